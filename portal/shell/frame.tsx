/** What surrounds every page of somebody who is signed in. */
import './frame.css'
import { Outlet, useLocation } from '@tanstack/react-router'
import { LayoutDashboard, Menu as MenuIcon, Search } from 'lucide-react'
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { Button as AriaButton, Dialog, Link as AriaLink, Modal, ModalOverlay } from 'react-aria-components'
import { liveState } from '../api/live.ts'
import { useMay } from '../api/session.ts'
import type { Area, Noun } from '../nouns/noun.ts'
import { allNouns } from '../nouns/registry.ts'
import { after } from '../system.ts'
import { nounTexts, t } from '../texts/index.ts'
import { Button, Hint } from '../ui/button.tsx'
import { BrandLink, BrandLinks } from './brand.tsx'
import { KeyHelp } from './key-help.tsx'
import type { Place } from './keys.ts'
import type { PaletteProps } from './palette.tsx'

/** Not needed for the first page: it comes soon after, before somebody types in it. */
const loadPalette = async () => ({ default: (await import('./palette.tsx')).Palette })
const Palette = lazy(loadPalette)
const SOON_MILLISECONDS = 1_000

export interface NavigationItem {
  readonly href: string
  readonly name: string
  readonly icon: ReactNode
}

export interface NavigationArea {
  readonly name: string
  /** Of its nouns; absent when it has none. */
  readonly area?: Area
  /** Its other pages. */
  readonly items?: readonly NavigationItem[]
}

/** What differs between the portals. Components, so that each reads what it shows. */
export interface FrameParts {
  /** A hook: the parts of the navigation, from the first to the last. */
  readonly useAreas: () => readonly NavigationArea[]
  readonly Banners: ComponentType
  /** At the end of the top bar. */
  readonly Top: ComponentType
  readonly SignInSheet: ComponentType
  /** A hook: where `g` and a letter go. */
  readonly usePlaces: () => readonly Place[]
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
  // one that does not come is asked for again when it is opened
  useEffect(() => after(SOON_MILLISECONDS, () => void loadPalette().catch(() => undefined)), [])
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
      {isPaletteOpen ? (
        <Suspense>
          <Palette close={() => setPaletteOpen(false)} useMore={parts.usePaletteMore} />
        </Suspense>
      ) : null}
      <KeyHelp openPalette={() => setPaletteOpen(true)} places={parts.usePlaces()} />
      <parts.SignInSheet />
    </>
  )
}

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

const linkTo = ({ name, path, icon: Icon }: Noun): NavigationItem => ({
  href: path,
  name: nounTexts(name).many,
  icon: <Icon aria-hidden="true" />,
})

function Sidebar({ pathname, parts }: SidebarProps): ReactNode {
  const may = useMay()
  const nouns = allNouns().filter(({ list }) => may(list))
  return (
    <nav className="sidebar" aria-label={t().frame.navigation}>
      <BrandLink href="/dashboard" />
      <NavLink href="/dashboard" icon={<LayoutDashboard aria-hidden="true" />} pathname={pathname}>
        {t().frame.dashboard}
      </NavLink>
      {parts.useAreas().map(({ area, name, items = [] }) => {
        const links = [...nouns.filter((noun) => noun.area === area).map(linkTo), ...items]
        return links.length === 0 ? null : (
          <div key={name}>
            <p className="nav-area">{name}</p>
            {links.map((link) => (
              <NavLink key={link.href} href={link.href} icon={link.icon} pathname={pathname}>
                {link.name}
              </NavLink>
            ))}
          </div>
        )
      })}
      <BrandLinks />
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

/** Whether changes arrive by the stream. */
export function LiveDot(): ReactNode {
  const state = liveState.use()
  const text = t().frame[state]
  return (
    <Hint text={text}>
      <AriaButton className={`live-dot ${state}`} aria-label={text} />
    </Hint>
  )
}
