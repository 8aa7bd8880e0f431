/** The frame of customers. */
import { Activity, Archive, ScrollText, Settings } from 'lucide-react'
import type { ReactNode } from 'react'
import { t } from '../texts/index.ts'
import { ActivityTray } from './activity-tray.tsx'
import { Banners } from './banners.tsx'
import { useSettingsAndSearch } from './customer-palette.tsx'
import { Frame, LiveDot, type FrameParts, type NavigationItem } from './frame.tsx'
import type { PaletteEntry } from './palette.tsx'
import { PersonMenu } from './person-menu.tsx'
import { SignInSheet } from './sign-in-sheet.tsx'

/** Pages that are no nouns, by the part of the navigation that they are in. */
const pages = (): Readonly<Record<'storage' | 'account', readonly NavigationItem[]>> => ({
  storage: [{ href: '/object-storage', name: t().objectStorage.title, icon: <Archive aria-hidden="true" /> }],
  account: [
    { href: '/activity', name: t().frame.activity, icon: <Activity aria-hidden="true" /> },
    { href: '/audit', name: t().audit.title, icon: <ScrollText aria-hidden="true" /> },
    { href: '/settings', name: t().account.title, icon: <Settings aria-hidden="true" /> },
  ],
})

const pagesForPalette = (): readonly PaletteEntry[] =>
  Object.values(pages())
    .flat()
    .map(({ href, name, icon }) => ({ id: href, name, icon, note: t().palette.pages }))

/** What `g` and a letter go to. */
const PLACES = [
  ['o', '/dashboard'],
  ['s', '/servers'],
  ['d', '/storages'],
  ['n', '/networks'],
  ['l', '/load-balancers'],
  ['p', '/databases'],
  ['k', '/kubernetes'],
  ['b', '/object-storage'],
  ['a', '/activity'],
  ['t', '/settings'],
] as const

const PARTS: FrameParts = {
  useAreas: () => [
    { area: 'compute', name: t().areas.compute },
    { area: 'storage', name: t().areas.storage, items: pages().storage },
    { area: 'network', name: t().areas.network },
    { area: 'services', name: t().areas.services },
    { area: 'account', name: t().areas.account, items: pages().account },
  ],
  Banners,
  Top: () => (
    <>
      <LiveDot />
      <ActivityTray />
      <PersonMenu />
    </>
  ),
  SignInSheet,
  usePlaces: () => PLACES.map(([letter, href]) => ({ letter, href, name: t().keys.places[letter] })),
  usePaletteMore: (text) => [...pagesForPalette(), ...useSettingsAndSearch(text)],
}

export const CustomerFrame = (): ReactNode => <Frame parts={PARTS} />
