import { mount } from 'svelte';
import App from './App.svelte';
import { InlinedSource } from './data/source.ts';
import { studyOfPage } from './study/model.ts';
import Study from './study/Study.svelte';

const target = document.getElementById('app');
if (target) {
  try {
    const study = studyOfPage();
    if (study) mount(Study, { target, props: { study } });
    else mount(App, { target, props: { source: InlinedSource.open() } });
  } catch (error) {
    const message = document.createElement('p');
    message.textContent = error instanceof Error ? error.message : String(error);
    target.replaceChildren(message);
    throw error;
  }
}
