import { mount } from 'svelte';
import '../app.css';
import { signIn } from './api.ts';
import Serve from './Serve.svelte';

const target = document.getElementById('app');
if (target) {
  // What follows the # is never sent: the page trades the token for a cookie, and takes it out of the address.
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  const signed = token === undefined ? Promise.resolve() : signIn(token);
  void signed.finally(() => {
    if (token !== undefined) history.replaceState(null, '', location.pathname + location.search);
    mount(Serve, { target });
  });
}
