/** Theme and language as a customer chooses them. They are kept with the person: another browser begins with them, and
 *  mails have the language. */
import { remember, remembered } from '../api/browser.ts'
import { call } from '../api/client.ts'
import type { Me } from '../api/session.ts'
import { pause } from '../system.ts'
import { chosenLocale, LOCALE_NAMES } from '../texts/index.ts'
import { showIn } from './language.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

/** `locale` is also what the browser that signed up asked for: only `portal_locale` was chosen here. */
type Choice = { readonly theme: Theme } | { readonly locale: string; readonly portal_locale: string }

/** A refusal, as in a support session, keeps the choice in this browser only. */
export async function keep(choice: Choice): Promise<void> {
  try {
    const { preferences } = await call('get_preferences')
    await call('set_preferences', { body: { preferences: { ...preferences, ...choice } } })
  } catch {
    // the person has those of before
  }
}

export async function chooseLanguage(tag: string): Promise<void> {
  await keep({ locale: tag, portal_locale: tag })
  showIn(tag)
}

/** For this long, the first page waits for what the person has chosen. */
const PATIENCE_MILLISECONDS = 2_000
const ADOPTED = 'adopted'

/** Whose choices this page has asked for: a browser without storage does not ask before each page. */
let asked: string | undefined

/** A browser begins with what the person who signs in, by whatever way, has chosen in another one. Where the service
 *  is slow, the next page shows the language. */
export async function adopt({ user: { id }, impersonation }: Pick<Me, 'user' | 'impersonation'>): Promise<void> {
  // somebody else's choices are not for the browser of support
  if (impersonation !== null || asked === id || remembered(ADOPTED) === id) return
  asked = id
  const locale = await Promise.race([takeOver(id), pause(PATIENCE_MILLISECONDS)])
  if (locale !== undefined && locale !== chosenLocale()) showIn(locale)
}

/** Answers the language that this browser has now from the person, and only if it keeps it. */
async function takeOver(id: string): Promise<string | undefined> {
  try {
    const { theme, portal_locale: locale } = (await call('get_preferences')).preferences
    remember(ADOPTED, id)
    if (chosenTheme() === 'system' && (theme === 'light' || theme === 'dark')) chooseTheme(theme)
    const isOffered = typeof locale === 'string' && Object.hasOwn(LOCALE_NAMES, locale)
    if (!isOffered || remembered('locale') !== undefined) return undefined
    remember('locale', locale)
    return remembered('locale')
  } catch {
    return undefined // the browser decides
  }
}
