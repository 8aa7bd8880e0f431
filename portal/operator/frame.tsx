/** The frame of staff and operators. */
import { BellRing, CircleUser, HardDrive, Receipt, ScrollText, Server } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { cache, forget, keyOf } from '../api/cache.ts'
import { sessionLost } from '../api/client.ts'
import type { Answer } from '../api/operations.ts'
import { useMay } from '../api/session.ts'
import { allNouns } from '../nouns/registry.ts'
import { Frame, type FrameParts, type NavigationItem } from '../shell/frame.tsx'
import type { Place } from '../shell/keys.ts'
import { languageEntries, leave, themeEntries } from '../shell/person-menu.tsx'
import { chosenTheme } from '../shell/theme.ts'
import { nounTexts, t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Menu } from '../ui/menu.tsx'
import { signedInStaff, signOutStaff, useStaff } from './session.ts'
import { StaffSignIn } from './sign-in.tsx'
import { o } from './texts/index.ts'

const AREAS = ['fleet', 'work', 'accounts'] as const

/** Pages that belong to no noun, with what they read. */
const PAGES = [
  { href: '/alarms', reads: 'list_alarms', name: () => o().alarms.title, icon: BellRing },
  { href: '/control-plane', reads: 'get_control_plane', name: () => o().plane.title, icon: Server },
  { href: '/storage-policies', reads: 'get_zone_storage_policy', name: () => o().policy.title, icon: HardDrive },
  { href: '/billing', reads: 'list_invoice_runs', name: () => o().billing.title, icon: Receipt },
  { href: '/audit', reads: 'list_staff_audit_entries', name: () => o().audit.title, icon: ScrollText },
] as const

/** What `g` and a letter go to. */
const PLACES = [
  ['o', '/dashboard'],
  ['n', '/nodes'],
  ['w', '/operations'],
  ['a', '/alarms'],
  ['k', '/accounts'],
  ['q', '/quota-requests'],
  ['b', '/billing'],
  ['l', '/audit'],
] as const

/** A hook: those that the role may read, and what they are called. */
function usePlaces(): readonly Place[] {
  const pages = usePages()
  const may = useMay()
  const names = new Map<string, string>([
    ['/dashboard', t().dashboard.title],
    ...pages.map(({ href, name }) => [href, name] as const),
    ...allNouns()
      .filter(({ list }) => may(list))
      .map(({ path, name }) => [path, nounTexts(name).many] as const),
  ])
  return PLACES.flatMap(([letter, href]) => {
    const name = names.get(href)
    return name === undefined ? [] : [{ letter, href, name }]
  })
}

/** A hook: those that the role may read. */
function usePages(): readonly NavigationItem[] {
  const may = useMay()
  return PAGES.filter(({ reads }) => may(reads)).map(({ href, name, icon: Icon }) => ({
    href,
    name: name(),
    icon: <Icon aria-hidden="true" />,
  }))
}

const PARTS: FrameParts = {
  useAreas: () => [
    ...AREAS.map((area) => ({ area, name: o().areas[area] })),
    { name: o().areas.more, items: usePages() },
  ],
  Banners: () => null,
  Top: StaffMenu,
  SignInSheet: StaffSheet,
  usePlaces,
  usePaletteMore: () => usePages().map(({ href, name, icon }) => ({ id: href, name, icon, note: t().palette.pages })),
}

export const OperatorFrame = (): ReactNode => <Frame parts={PARTS} />

function StaffMenu(): ReactNode {
  const staff = useStaff()
  const email = staff?.email ?? ''
  const [theme, setTheme] = useState(chosenTheme())
  return (
    <Menu
      label={t().frame.person(email)}
      title={staff === undefined ? email : `${email} · ${staff.role}`}
      entries={[
        ...themeEntries(theme, setTheme),
        ...languageEntries(),
        { id: 'docs', name: o().document, href: '/openapi.json', isApart: true },
        {
          id: 'sign-out',
          name: t().frame.signOut,
          isApart: true,
          run: () => void leave(() => signOutStaff().then(() => '/login')),
        },
      ]}
    >
      <Button kind="quiet" label={t().frame.person(email)} icon={<CircleUser aria-hidden="true" />} />
    </Menu>
  )
}

/** Lies over a page whose session has ended: what was typed there is kept. */
function StaffSheet(): ReactNode {
  if (!sessionLost.use()) return null
  const before = cache.getQueryData<Answer<'get_current_staff'>>(keyOf('get_current_staff'))?.staff
  const finish = async (): Promise<void> => {
    cache.removeQueries({ queryKey: ['get_current_staff'] })
    const staff = await signedInStaff()
    if (before === undefined || staff?.id !== before.id) {
      forget()
      location.assign('/dashboard')
      return
    }
    sessionLost.set(false)
    await cache.invalidateQueries()
  }
  return (
    <Dialog title={t().sign.again} onClose={() => undefined} isFirm>
      <p>{t().sign.againNote}</p>
      <StaffSignIn onDone={() => void finish()} email={before?.email ?? ''} />
    </Dialog>
  )
}
