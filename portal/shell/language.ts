/** The language of the portal. Mails to a person have the same one, so that it is kept with the person too. */
import { putFragmentBack, remember } from '../api/browser.ts'
import { call } from '../api/client.ts'

/** Reloads the page in the language. */
export function showIn(tag: string): void {
  remember('locale', tag)
  // a token of a mail is nowhere else
  putFragmentBack()
  location.reload()
}

/** The same for a customer who is signed in. A refusal, as in a support session, changes this browser only. */
export async function chooseLanguage(tag: string): Promise<void> {
  try {
    const { preferences } = await call('get_preferences')
    await call('set_preferences', { body: { preferences: { ...preferences, locale: tag } } })
  } catch {
    // mails stay in the language of before
  }
  showIn(tag)
}
