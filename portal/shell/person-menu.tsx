/** The signed-in person: theme, language, account, sign-out. */
import { CircleUser } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { forget, useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import { signOut, useMe } from '../api/session.ts'
import { chosenLocale, LOCALE_NAMES, t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Menu, type MenuEntry } from '../ui/menu.tsx'
import { notify } from '../ui/toast.tsx'
import { showIn } from './language.ts'
import { chooseLanguage, keep } from './preferences.ts'
import { chooseTheme, chosenTheme, type Theme, THEMES } from './theme.ts'

export function PersonMenu(): ReactNode {
  const me = useMe()
  const email = me?.user.email ?? ''
  const [theme, setTheme] = useState(chosenTheme())
  const { data } = useRead('list_accounts', {}, { isOn: me !== undefined && me.impersonation === null })
  const accounts = (data?.items ?? []).filter(({ is_active: isActive }) => !isActive)
  const themes = themeEntries(theme, (chosen) => {
    setTheme(chosen)
    void keep({ theme: chosen })
  })
  const entries: readonly MenuEntry[] = [
    ...accounts.map(({ id, name }) => ({
      id: `account-${id}`,
      name,
      note: t().frame.switchTo,
      run: () => void switchTo(id),
    })),
    ...themes.map((entry, at) => (at === 0 && accounts.length > 0 ? { ...entry, isApart: true } : entry)),
    ...languageEntries((tag) => void chooseLanguage(tag)),
    { id: 'docs', name: t().frame.docs, href: '/docs', isApart: true },
    {
      id: 'sign-out',
      name: t().frame.signOut,
      isApart: true,
      run: () => void leave(signOut),
    },
  ]
  return (
    <Menu label={t().frame.person(email)} title={email} entries={entries}>
      <Button kind="quiet" label={t().frame.person(email)} icon={<CircleUser aria-hidden="true" />} />
    </Menu>
  )
}

/** Leaves for where the sign-out says; one that failed is said, and leaves nowhere. */
export async function leave(signOutHere: () => Promise<string>): Promise<void> {
  try {
    location.assign(await signOutHere())
  } catch (error) {
    notify(`${t().frame.notSignedOut} ${error instanceof Error ? error.message : ''}`.trim())
  }
}

/** Entries for each theme; the chosen one has a mark. */
export const themeEntries = (theme: Theme, setTheme: (theme: Theme) => void): readonly MenuEntry[] =>
  THEMES.map((each) => ({
    id: `theme-${each}`,
    name: t().frame.themes[each],
    ...(each === theme ? { note: '✓' } : {}),
    run: () => {
      chooseTheme(each)
      setTheme(each)
    },
  }))

/** Entries for the other languages. */
export const languageEntries = (choose: (tag: string) => void = showIn): readonly MenuEntry[] =>
  Object.entries(LOCALE_NAMES)
    .filter(([tag]) => tag !== chosenLocale())
    .map(([tag, name], at) => ({ id: tag, name, isApart: at === 0, run: () => choose(tag) }))

async function switchTo(account: string): Promise<void> {
  await call('switch_account', { body: { account_id: account } })
  forget()
  location.assign('/dashboard')
}
