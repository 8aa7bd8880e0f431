/** The language of the portal. */
import { putFragmentBack, remember } from '../api/browser.ts'

/** Reloads the page in the language. */
export function showIn(tag: string): void {
  remember('locale', tag)
  // a token of a mail is nowhere else
  putFragmentBack()
  location.reload()
}
