/** The addresses of the portal: pages before sign-in, pages of the frame, and those of each noun. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
  type RouteComponent,
  useRouter,
} from '@tanstack/react-router'
import { type ReactNode, Suspense, useMemo } from 'react'
import { I18nProvider, RouterProvider as AriaRouter } from 'react-aria-components'
import { sessionLost } from '../api/client.ts'
import { signedIn } from '../api/session.ts'
import { allNouns } from '../nouns/registry.ts'
import { locale } from '../texts/locale.ts'
import { Notices } from '../ui/toast.tsx'
import { follow } from './follow.ts'
import { Frame } from './frame.tsx'
import { CreateRoute, ItemRoute, ListRoute } from './noun-routes.tsx'
import { BrokenPage, MissingPage } from './missing.tsx'

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

const root = createRootRoute({
  component: Root,
  notFoundComponent: MissingPage,
  errorComponent: BrokenPage,
  beforeLoad: ({ location: { pathname, href } }) => {
    if (isOther(pathname)) location.assign(href)
  },
})

const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: Frame,
  beforeLoad: async ({ location: { href } }) => {
    // an open page gets the sheet instead: what was typed stays
    if (sessionLost.get()) return
    if ((await signedIn()) !== undefined) return follow()
    throw redirect({ href: `/login?${new URLSearchParams({ return_to: href })}` })
  },
})

const page = (path: string, component: RouteComponent) => createRoute({ getParentRoute: () => frame, path, component })
const outside = (path: string, component: RouteComponent) =>
  createRoute({ getParentRoute: () => root, path, component })
const login = () => import('../pages/login.tsx')
const mailed = () => import('../pages/mailed.tsx')

export function routerOf() {
  const nouns = allNouns().flatMap((noun) => [
    page(noun.path, () => <ListRoute noun={noun} />),
    ...(noun.create === undefined ? [] : [page(`${noun.path}/new`, () => <CreateRoute noun={noun} />)]),
    page(`${noun.path}/$id`, () => <ItemRoute noun={noun} />),
  ])
  const dashboard = lazyRouteComponent(() => import('../pages/dashboard.tsx'), 'DashboardPage')
  const settings = lazyRouteComponent(() => import('../pages/settings.tsx'), 'Settings')
  return createRouter({
    routeTree: root.addChildren([
      createRoute({
        getParentRoute: () => root,
        path: '/',
        beforeLoad: () => {
          throw redirect({ href: '/dashboard' })
        },
      }),
      outside('/login', lazyRouteComponent(login, 'LoginPage')),
      outside('/login/mfa', lazyRouteComponent(login, 'LoginFactorPage')),
      outside(
        '/signup',
        lazyRouteComponent(() => import('../pages/sign-up.tsx'), 'SignUpPage'),
      ),
      outside('/verify-email', lazyRouteComponent(mailed, 'VerifyEmailPage')),
      outside('/reset-password', lazyRouteComponent(mailed, 'ResetPasswordPage')),
      outside('/accept-invitation', lazyRouteComponent(mailed, 'AcceptInvitationPage')),
      outside('/support/handoff', lazyRouteComponent(mailed, 'HandoffPage')),
      frame.addChildren([
        page('/dashboard', dashboard),
        page(
          '/activity',
          lazyRouteComponent(() => import('../pages/activity.tsx'), 'ActivityPage'),
        ),
        page(
          '/audit',
          lazyRouteComponent(() => import('../pages/audit.tsx'), 'AuditPage'),
        ),
        page('/settings', settings),
        page('/settings/$page', settings),
        ...nouns,
      ]),
    ]),
    scrollRestoration: true,
    defaultPreload: false,
  })
}
