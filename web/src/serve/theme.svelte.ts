/** Dark or light: as in the system, until the user chooses. */

class Theme {
  dark: boolean = $state(false);
  #key = 'whyso-theme';

  constructor() {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const stored = localStorage.getItem(this.#key);
    this.#set(stored === null ? system.matches : stored === 'dark');
    system.addEventListener('change', (event) => {
      if (localStorage.getItem(this.#key) === null) this.#set(event.matches);
    });
  }

  toggle(): void {
    this.#set(!this.dark);
    localStorage.setItem(this.#key, this.dark ? 'dark' : 'light');
  }

  #set(dark: boolean): void {
    this.dark = dark;
    document.documentElement.classList.toggle('dark', dark);
  }
}

export const theme = new Theme();
