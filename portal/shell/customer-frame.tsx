/** The frame of customers. */
import { Activity, ScrollText, Settings } from 'lucide-react'
import type { ReactNode } from 'react'
import { t } from '../texts/index.ts'
import { ActivityTray } from './activity-tray.tsx'
import { Banners } from './banners.tsx'
import { useSettingsAndSearch } from './customer-palette.tsx'
import { Frame, type FrameParts } from './frame.tsx'
import { PersonMenu } from './person-menu.tsx'
import { SignInSheet } from './sign-in-sheet.tsx'

const AREAS = ['compute', 'storage', 'network', 'services'] as const

const PARTS: FrameParts = {
  areas: () => AREAS.map((area) => ({ area, name: t().areas[area] })),
  last: () => ({
    name: t().areas.account,
    items: [
      { href: '/activity', name: t().frame.activity, icon: <Activity aria-hidden="true" /> },
      { href: '/audit', name: t().audit.title, icon: <ScrollText aria-hidden="true" /> },
      { href: '/settings', name: t().account.title, icon: <Settings aria-hidden="true" /> },
    ],
  }),
  Banners,
  Top: () => (
    <>
      <ActivityTray />
      <PersonMenu />
    </>
  ),
  SignInSheet,
  usePaletteMore: useSettingsAndSearch,
}

export const CustomerFrame = (): ReactNode => <Frame parts={PARTS} />
