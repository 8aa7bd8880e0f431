/** The small pages behind the links of mails and of the support handoff, for deployments without a portal: each posts
 *  the secret from the fragment to the API of the same origin. One inline script and style, named by hash in the
 *  content security policy; no other origin. */
import { createHash } from 'node:crypto'

export interface IdentityPage {
  readonly path: string
  readonly html: string
  readonly contentSecurityPolicy: string
}

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}input,' +
  'button{font:inherit;padding:.4rem .6rem}label{display:block;margin:1rem 0 ' +
  '.3rem}input{width:100%;box-sizing:border-box}button{margin-top:1rem}'

interface PageText {
  readonly path: string
  readonly title: string
  readonly explanation: string
  /** The fragment's parameter that carries the secret; also the body's field. */
  readonly secret: 'token' | 'invitation' | 'code'
  readonly action: string
  readonly button: string
  readonly done: string
  readonly asksPassword: boolean
}

/** The field for a new password, and how the script sends it. */
const PASSWORD = {
  input:
    '<label for="password">New password (at least 12 characters)</label><input id="password" name="password" ' +
    'type="password" autocomplete="new-password" minlength="12" maxlength="128" required>',
  value: ', password: form.elements.password.value',
}

function page(text: PageText): IdentityPage {
  const password = text.asksPassword ? PASSWORD : { value: '', input: '' }
  const script = `'use strict';
const secret = new URLSearchParams(location.hash.slice(1)).get(${JSON.stringify(text.secret)});
history.replaceState(null, '', location.pathname);
const form = document.querySelector('form');
const say = document.querySelector('output');
if (!secret) { form.hidden = true; say.textContent = 'This link is incomplete. Open it again from the mail.'; }
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  form.querySelector('button').disabled = true;
  const body = { ${JSON.stringify(text.secret)}: secret${password.value} };
  try {
    const answer = await fetch(${JSON.stringify(text.action)}, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    if (answer.ok) { form.hidden = true; say.textContent = ${JSON.stringify(text.done)}; return; }
    say.textContent = (await answer.json()).detail;
  } catch { say.textContent = 'The service does not answer. Try again.'; }
  form.querySelector('button').disabled = false;
});`
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${text.title}</title><style>${STYLE}</style></head>
<body><h1>${text.title}</h1><p>${text.explanation}</p>
<form>${password.input}<button>${text.button}</button></form><p><output></output></p>
<script>${script}</script></body></html>
`
  const hashOf = (content: string): string => `'sha256-${createHash('sha256').update(content).digest('base64')}'`
  return {
    path: text.path,
    html,
    contentSecurityPolicy:
      `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(STYLE)}; connect-src 'self'; base-uri ` +
      `'none'; form-action 'none'; frame-ancestors 'none'`,
  }
}

export const PAGES: readonly IdentityPage[] = [
  page({
    path: '/verify-email',
    title: 'Verify your email address',
    explanation: 'Press the button to verify your address.',
    secret: 'token',
    action: '/v1/auth/email-verification/confirm',
    button: 'Verify',
    done: 'Your address is verified.',
    asksPassword: false,
  }),
  page({
    path: '/reset-password',
    title: 'Reset your password',
    explanation: 'Choose a new password. Every session will be ended.',
    secret: 'token',
    action: '/v1/auth/password-reset/confirm',
    button: 'Set the password',
    done: 'Your password is changed. Sign in with it.',
    asksPassword: true,
  }),
  page({
    path: '/support/handoff',
    title: 'Enter the account',
    explanation: 'Press the button to start the support session.',
    secret: 'code',
    action: '/v1/auth/support-handoff',
    button: 'Enter',
    done: 'The session is open in this browser.',
    asksPassword: false,
  }),
  page({
    path: '/accept-invitation',
    title: 'Accept your invitation',
    explanation: 'Choose a password for your user, or enter the one you have.',
    secret: 'invitation',
    action: '/v1/auth/accept-invitation',
    button: 'Accept',
    done: 'You are a member now. Sign in to continue.',
    asksPassword: true,
  }),
]
