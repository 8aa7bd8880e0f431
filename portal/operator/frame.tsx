/** The frame of staff and operators. */
import { CircleUser, HardDrive, ScrollText } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { cache, forget, keyOf } from '../api/cache.ts'
import { sessionLost } from '../api/client.ts'
import type { Answer } from '../api/operations.ts'
import { Frame, type FrameParts, type NavigationItem } from '../shell/frame.tsx'
import { languageEntries, themeEntries } from '../shell/person-menu.tsx'
import { chosenTheme } from '../shell/theme.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Menu } from '../ui/menu.tsx'
import { signedInStaff, signOutStaff, useStaff } from './session.ts'
import { StaffSignIn } from './sign-in.tsx'
import { o } from './texts/index.ts'

const AREAS = ['fleet', 'work', 'accounts'] as const

const pages = (): readonly NavigationItem[] => [
  { href: '/storage-policies', name: o().policy.title, icon: <HardDrive aria-hidden="true" /> },
  { href: '/audit', name: o().audit.title, icon: <ScrollText aria-hidden="true" /> },
]

const PARTS: FrameParts = {
  areas: () => [...AREAS.map((area) => ({ area, name: o().areas[area] })), { name: o().areas.more, items: pages() }],
  Banners: () => null,
  Top: StaffMenu,
  SignInSheet: StaffSheet,
  usePaletteMore: () => pages().map(({ href, name, icon }) => ({ id: href, name, icon, note: t().palette.pages })),
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
        { id: 'docs', name: t().frame.docs, href: '/docs', isApart: true },
        {
          id: 'sign-out',
          name: t().frame.signOut,
          isApart: true,
          run: () => void signOutStaff().then(() => location.assign('/login')),
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
