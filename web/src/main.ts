import { mount } from 'svelte';
import App from './App.svelte';
import { InlinedSource } from './data/source.ts';

const target = document.getElementById('app');
if (target) {
  try {
    mount(App, { target, props: { source: InlinedSource.open() } });
  } catch (error) {
    const message = document.createElement('p');
    message.textContent = error instanceof Error ? error.message : String(error);
    target.replaceChildren(message);
    throw error;
  }
}
