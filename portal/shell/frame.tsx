/** What surrounds every page of somebody who is signed in. */
import './frame.css'
import { Outlet, useLocation } from '@tanstack/react-router'
import { Boxes, LayoutDashboard, Menu as MenuIcon, Search } from 'lucide-react'
import { type ComponentType, type ReactNode, useEffect, useState } from 'react'
import { Button as AriaButton, Dialog, Link as AriaLink, Modal, ModalOverlay } from 'react-aria-components'
import { liveState } from '../api/live.ts'
import type { Area } from '../nouns/noun.ts'
import { allNouns } from '../nouns/registry.ts'
import { nounTexts, t } from '../texts/index.ts'
import { Button, Hint } from '../ui/button.tsx'
import { KeyHelp } from './key-help.tsx'
import { Palette, type PaletteProps } from './palette.tsx'

export interface NavigationItem {
  readonly href: string
  readonly name: string
  readonly icon: ReactNode
}

/** What differs between the portals. Components, so that each reads what it shows. */
export interface FrameParts {
  readonly areas: () => readonly { readonly area: Area; readonly name: string }[]
  /** The last part of the navigation. */
  readonly last: () => { readonly name: string; readonly items: readonly NavigationItem[] }
  readonly Banners: ComponentType
  /** At the end of the top bar. */
  readonly Top: ComponentType
  readonly SignInSheet: ComponentType
  /** A hook. */
  readonly usePaletteMore: PaletteProps['useMore']
}

export function Frame({ parts }: { readonly parts: FrameParts }): ReactNode {
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
        <Sidebar pathname={pathname} parts={parts} />
        <div>
          <parts.Banners />
          <Topbar openPalette={() => setPaletteOpen(true)} pathname={pathname} parts={parts} />
          <main id="content" tabIndex={-1}>
            <Outlet />
          </main>
        </div>
      </div>
      {isPaletteOpen ? <Palette close={() => setPaletteOpen(false)} useMore={parts.usePaletteMore} /> : null}
      <KeyHelp openPalette={() => setPaletteOpen(true)} />
      <parts.SignInSheet />
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

interface SidebarProps {
  readonly pathname: string
  readonly parts: FrameParts
}

function Sidebar({ pathname, parts }: SidebarProps): ReactNode {
  const nouns = allNouns()
  const last = parts.last()
  return (
    <nav className="sidebar" aria-label={t().frame.navigation}>
      <Brand />
      <NavLink href="/dashboard" icon={<LayoutDashboard aria-hidden="true" />} pathname={pathname}>
        {t().frame.dashboard}
      </NavLink>
      {parts.areas().map(({ area, name: areaName }) => {
        const inArea = nouns.filter((each) => each.area === area)
        return inArea.length === 0 ? null : (
          <div key={area}>
            <p className="nav-area">{areaName}</p>
            {inArea.map(({ name, path, icon: Icon }) => (
              <NavLink key={name} href={path} icon={<Icon aria-hidden="true" />} pathname={pathname}>
                {nounTexts(name).many}
              </NavLink>
            ))}
          </div>
        )
      })}
      <div>
        <p className="nav-area">{last.name}</p>
        {last.items.map(({ href, name, icon }) => (
          <NavLink key={href} href={href} icon={icon} pathname={pathname}>
            {name}
          </NavLink>
        ))}
      </div>
    </nav>
  )
}

interface TopbarProps extends SidebarProps {
  readonly openPalette: () => void
}

function Topbar({ openPalette, pathname, parts }: TopbarProps): ReactNode {
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
      <parts.Top />
      <ModalOverlay className="drawer" isOpen={isOpen} onOpenChange={setOpen} isDismissable>
        <Modal>
          <Dialog aria-label={t().frame.navigation}>
            <Sidebar pathname={pathname} parts={parts} />
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
