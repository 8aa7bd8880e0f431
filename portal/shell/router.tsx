/** The addresses of the customers' portal: pages before sign-in, pages of the frame, and those of each noun. */
import { createRoute, createRouter, lazyRouteComponent, redirect, type RouteComponent } from '@tanstack/react-router'
import { sessionLost } from '../api/client.ts'
import { signedIn } from '../api/session.ts'
import { CustomerFrame } from './customer-frame.tsx'
import { follow } from './follow.ts'
import { adopt } from './preferences.ts'
import { home, nounPages, outside, root } from './root.tsx'

const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: CustomerFrame,
  beforeLoad: async ({ location: { href } }) => {
    // an open page gets the sheet instead: what was typed stays
    if (sessionLost.get()) return
    const me = await signedIn()
    if (me === undefined) throw redirect({ href: `/login?${new URLSearchParams({ return_to: href })}` })
    await adopt(me)
    follow()
  },
})

const page = (path: string, component: RouteComponent) => createRoute({ getParentRoute: () => frame, path, component })
const login = () => import('../pages/login.tsx')
const mailed = () => import('../pages/mailed.tsx')

/** The pages of object storage have texts that no other page loads. */
async function withStorageTexts<Module>(module: Promise<Module>): Promise<Module> {
  const [loaded, texts] = await Promise.all([module, import('../texts/object-storage.ts')])
  await texts.loadStorageTexts()
  return loaded
}

/** As above, of settings. */
async function withSettingsTexts<Module>(module: Promise<Module>): Promise<Module> {
  const [loaded, texts] = await Promise.all([module, import('../texts/settings.ts')])
  await texts.loadSettingsTexts()
  return loaded
}

export function routerOf() {
  const dashboard = lazyRouteComponent(() => import('../pages/dashboard.tsx'), 'DashboardPage')
  const settings = lazyRouteComponent(() => withSettingsTexts(import('../pages/settings.tsx')), 'Settings')
  return createRouter({
    routeTree: root.addChildren([
      home,
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
        page(
          '/object-storage',
          lazyRouteComponent(() => withStorageTexts(import('../pages/object-storage.tsx')), 'ObjectStoragePage'),
        ),
        page(
          '/object-storage/$zone/$bucket',
          lazyRouteComponent(() => withStorageTexts(import('../pages/bucket.tsx')), 'BucketPage'),
        ),
        page('/settings', settings),
        page('/settings/$page', settings),
        ...nounPages(page),
      ]),
    ]),
    scrollRestoration: true,
    defaultPreload: false,
  })
}
