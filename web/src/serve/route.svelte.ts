/** The address of the page and of what it shows. A copied address shows the same. */

export interface Place {
  page: 'runs' | 'run' | 'study' | 'compare' | 'writer' | 'none';
  /** Of a run or a study. */
  id: string;
  query: URLSearchParams;
}

function here(): Place {
  const path = location.pathname;
  const query = new URLSearchParams(location.search);
  if (path === '/' || path === '/index.html') return { page: 'runs', id: '', query };
  const id = /^\/runs\/([^/]+)\/?$/.exec(path)?.[1];
  if (id !== undefined) return { page: 'run', id: decodeId(id), query };
  const study = /^\/studies\/([^/]+)\/?$/.exec(path)?.[1];
  if (study !== undefined) return { page: 'study', id: decodeId(study), query };
  if (path === '/compare') return { page: 'compare', id: '', query };
  return { page: path === '/report' ? 'writer' : 'none', id: '', query };
}

function decodeId(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

class Route {
  place: Place = $state.raw(here());

  constructor() {
    addEventListener('popstate', () => (this.place = here()));
  }

  go(address: string): void {
    history.pushState(null, '', address);
    this.place = here();
    scrollTo(0, 0);
  }

  /** Changes the query of the address without a new step in the browser's history. */
  note(query: Record<string, string | null>): void {
    const now = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(query)) {
      if (value === null || value === '') now.delete(name);
      else now.set(name, value);
    }
    const text = now.toString();
    history.replaceState(null, '', location.pathname + (text === '' ? '' : `?${text}`) + location.hash);
  }
}

export const route = new Route();

/** For links: a plain click stays in the page, any other is the browser's. */
export function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = (event.currentTarget as HTMLAnchorElement).getAttribute('href');
  if (link === null) return;
  event.preventDefault();
  route.go(link);
}
