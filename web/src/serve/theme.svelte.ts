/** Dark or light: as the system has it, until the reader says otherwise. */

class Theme {
  dark: boolean = $state(false);
  #kept = 'whyso-theme';

  constructor() {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const kept = localStorage.getItem(this.#kept);
    this.#set(kept === null ? system.matches : kept === 'dark');
    system.addEventListener('change', (event) => {
      if (localStorage.getItem(this.#kept) === null) this.#set(event.matches);
    });
  }

  toggle(): void {
    this.#set(!this.dark);
    localStorage.setItem(this.#kept, this.dark ? 'dark' : 'light');
  }

  #set(dark: boolean): void {
    this.dark = dark;
    document.documentElement.classList.toggle('dark', dark);
  }
}

export const theme = new Theme();
