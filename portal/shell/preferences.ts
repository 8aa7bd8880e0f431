/** Theme and language as a customer chooses them. They are kept with the person: another browser begins with them, and
 *  mails have the language. */
import { remember, remembered } from '../api/browser.ts'
import { call } from '../api/client.ts'
import { showIn } from './language.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

/** A refusal, as in a support session, keeps the choice in this browser only. */
export async function keep(choice: { readonly theme: Theme } | { readonly locale: string }): Promise<void> {
  try {
    const { preferences } = await call('get_preferences')
    await call('set_preferences', { body: { preferences: { ...preferences, ...choice } } })
  } catch {
    // the person has those of before
  }
}

export async function chooseLanguage(tag: string): Promise<void> {
  await keep({ locale: tag })
  showIn(tag)
}

/** Takes over what the person has chosen, where nobody has chosen in this browser. The next page shows it. */
export async function adopt(): Promise<void> {
  try {
    const { preferences, updated_at: chosenAt } = await call('get_preferences')
    // before a choice, the language is that of the browser that signed up
    if (chosenAt === null) return
    const { theme, locale } = preferences
    if (chosenTheme() === 'system' && (theme === 'light' || theme === 'dark')) chooseTheme(theme)
    if (remembered('locale') === undefined && typeof locale === 'string') remember('locale', locale)
  } catch {
    // the browser decides
  }
}
