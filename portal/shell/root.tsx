/** The root of all addresses, and the addresses of nouns: common to the portals. */
import { createRootRoute, createRoute, Outlet, redirect, type RouteComponent, useRouter } from '@tanstack/react-router'
import { type ReactNode, Suspense, useMemo } from 'react'
import { I18nProvider, RouterProvider as AriaRouter } from 'react-aria-components'
import type { Noun } from '../nouns/noun.ts'
import { allNouns } from '../nouns/registry.ts'
import { locale } from '../texts/locale.ts'
import { Notices } from '../ui/toast.tsx'
import { BrokenPage, MissingPage } from './missing.tsx'
import { CreateRoute, ItemRoute, ListRoute } from './noun-routes.tsx'

function Root(): ReactNode {
  const router = useRouter()
  const navigate = useMemo(
    // addresses are data
    () => (href: string) => void router.navigate({ href } as never),
    [router],
  )
  return (
    <I18nProvider locale={locale()}>
      <AriaRouter navigate={navigate}>
        <Suspense>
          <Outlet />
        </Suspense>
        <Notices />
      </AriaRouter>
    </I18nProvider>
  )
}

/** Another page of the API server, not of the portal. */
const isOther = (pathname: string): boolean => /^\/(docs|v1|openapi\.json)(\/|$)/.test(pathname)

export const root = createRootRoute({
  component: Root,
  notFoundComponent: MissingPage,
  errorComponent: BrokenPage,
  beforeLoad: ({ location: { pathname, href } }) => {
    if (isOther(pathname)) location.assign(href)
  },
})

/** `/` is the overview. */
export const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ href: '/dashboard' })
  },
})

/** A page outside of the frame. */
export const outside = (path: string, component: RouteComponent) =>
  createRoute({ getParentRoute: () => root, path, component })

/** List, form and page of each registered noun. */
export const nounPages = <Page,>(page: (path: string, component: RouteComponent) => Page): readonly Page[] =>
  allNouns().flatMap((noun: Noun) => [
    page(noun.path, () => <ListRoute noun={noun} />),
    ...(noun.create === undefined ? [] : [page(`${noun.path}/new`, () => <CreateRoute noun={noun} />)]),
    page(`${noun.path}/$id`, () => <ItemRoute noun={noun} />),
  ])
