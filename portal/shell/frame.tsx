/** What surrounds every page of somebody who is signed in. */
import './frame.css'
import { Outlet, useLocation } from '@tanstack/react-router'
import { Activity, Boxes, LayoutDashboard, Menu as MenuIcon, ScrollText, Search, Settings } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { Dialog, Link as AriaLink, Modal, ModalOverlay } from 'react-aria-components'
import { liveState } from '../api/live.ts'
import { allNouns } from '../nouns/registry.ts'
import { t } from '../texts/index.ts'
import { Button, Hint } from '../ui/button.tsx'
import { Button as AriaButton } from 'react-aria-components'
import { ActivityTray } from './activity-tray.tsx'
import { Banners } from './banners.tsx'
import { KeyHelp } from './key-help.tsx'
import { Palette } from './palette.tsx'
import { PersonMenu } from './person-menu.tsx'
import { SignInSheet } from './sign-in-sheet.tsx'

const AREAS = ['compute', 'storage', 'network', 'services'] as const

export function Frame(): ReactNode {
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        setPaletteOpen(true)
      }
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [])
  const { pathname } = useLocation()
  return (
    <>
      <a className="skip" href="#content">
        {t().frame.skip}
      </a>
      <div className="frame">
        <Sidebar pathname={pathname} />
        <div>
          <Banners />
          <Topbar openPalette={() => setPaletteOpen(true)} pathname={pathname} />
          <main id="content" tabIndex={-1}>
            <Outlet />
          </main>
        </div>
      </div>
      {isPaletteOpen ? <Palette close={() => setPaletteOpen(false)} /> : null}
      <KeyHelp openPalette={() => setPaletteOpen(true)} />
      <SignInSheet />
    </>
  )
}

export const Brand = (): ReactNode => (
  <AriaLink href="/dashboard" className="brand">
    <span className="mark" aria-hidden="true">
      <Boxes />
    </span>
    {t().product}
  </AriaLink>
)

const isIn = (pathname: string, path: string): boolean => pathname === path || pathname.startsWith(`${path}/`)

interface NavLinkProps {
  readonly href: string
  readonly icon: ReactNode
  readonly children: string
  readonly pathname: string
}

const NavLink = ({ href, icon, children, pathname }: NavLinkProps): ReactNode => (
  <AriaLink href={href} className="nav-link" {...(isIn(pathname, href) ? { 'aria-current': 'page' } : {})}>
    {icon}
    {children}
  </AriaLink>
)

function Sidebar({ pathname }: { readonly pathname: string }): ReactNode {
  const nouns = allNouns()
  return (
    <nav className="sidebar" aria-label={t().frame.navigation}>
      <Brand />
      <NavLink href="/dashboard" icon={<LayoutDashboard aria-hidden="true" />} pathname={pathname}>
        {t().frame.dashboard}
      </NavLink>
      {AREAS.map((area) => {
        const inArea = nouns.filter((each) => each.area === area)
        return inArea.length === 0 ? null : (
          <div key={area}>
            <p className="nav-area">{t().areas[area]}</p>
            {inArea.map(({ name, path, icon: Icon }) => (
              <NavLink key={name} href={path} icon={<Icon aria-hidden="true" />} pathname={pathname}>
                {t().nouns[name].many}
              </NavLink>
            ))}
          </div>
        )
      })}
      <div>
        <p className="nav-area">{t().areas.account}</p>
        <NavLink href="/activity" icon={<Activity aria-hidden="true" />} pathname={pathname}>
          {t().frame.activity}
        </NavLink>
        <NavLink href="/audit" icon={<ScrollText aria-hidden="true" />} pathname={pathname}>
          {t().audit.title}
        </NavLink>
        <NavLink href="/settings" icon={<Settings aria-hidden="true" />} pathname={pathname}>
          {t().account.title}
        </NavLink>
      </div>
    </nav>
  )
}

interface TopbarProps {
  readonly openPalette: () => void
  readonly pathname: string
}

function Topbar({ openPalette, pathname }: TopbarProps): ReactNode {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [pathname])
  return (
    <header className="topbar">
      <div className="menu-button">
        <Button
          kind="quiet"
          label={t().frame.openNavigation}
          icon={<MenuIcon aria-hidden="true" />}
          onPress={() => setOpen(true)}
        />
      </div>
      <AriaButton className="search-button" onPress={openPalette}>
        <Search aria-hidden="true" />
        <span>{t().frame.search}</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </AriaButton>
      <div className="spread" />
      <LiveDot />
      <ActivityTray />
      <PersonMenu />
      <ModalOverlay className="drawer" isOpen={isOpen} onOpenChange={setOpen} isDismissable>
        <Modal>
          <Dialog aria-label={t().frame.navigation}>
            <Sidebar pathname={pathname} />
          </Dialog>
        </Modal>
      </ModalOverlay>
    </header>
  )
}

function LiveDot(): ReactNode {
  const state = liveState.use()
  const text = t().frame[state]
  return (
    <Hint text={text}>
      <AriaButton className={`live-dot ${state}`} aria-label={text} />
    </Hint>
  )
}
