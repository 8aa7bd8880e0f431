/** The addresses of the operators' portal. */
import { createRoute, createRouter, lazyRouteComponent, redirect, type RouteComponent } from '@tanstack/react-router'
import { sessionLost } from '../api/client.ts'
import { home, nounPages, outside, root } from '../shell/root.tsx'
import { OperatorFrame } from './frame.tsx'
import { signedInStaff } from './session.ts'

const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: OperatorFrame,
  beforeLoad: async ({ location: { href } }) => {
    // an open page gets the sheet instead: what was typed stays
    if (sessionLost.get() || (await signedInStaff()) !== undefined) return
    throw redirect({ href: `/login?${new URLSearchParams({ return_to: href })}` })
  },
})

const page = (path: string, component: RouteComponent) => createRoute({ getParentRoute: () => frame, path, component })

export function operatorRouterOf() {
  return createRouter({
    routeTree: root.addChildren([
      home,
      // where the service sends staff at the end of a support session
      createRoute({
        getParentRoute: () => root,
        path: '/admin/accounts/$id',
        beforeLoad: ({ params: { id } }) => {
          throw redirect({ href: `/accounts/${encodeURIComponent(id)}` })
        },
      }),
      outside(
        '/login',
        lazyRouteComponent(() => import('./pages/login.tsx'), 'StaffLoginPage'),
      ),
      frame.addChildren([
        page(
          '/dashboard',
          lazyRouteComponent(() => import('./pages/overview.tsx'), 'OverviewPage'),
        ),
        page(
          '/storage-policies',
          lazyRouteComponent(() => import('./pages/storage-policies.tsx'), 'StoragePoliciesPage'),
        ),
        page(
          '/alarms',
          lazyRouteComponent(() => import('./pages/alarms.tsx'), 'AlarmsPage'),
        ),
        page(
          '/alarms/$type/$id',
          lazyRouteComponent(() => import('./pages/subject.tsx'), 'SubjectPage'),
        ),
        page(
          '/billing',
          lazyRouteComponent(() => import('./pages/billing.tsx'), 'BillingPage'),
        ),
        page(
          '/control-plane',
          lazyRouteComponent(() => import('./pages/control-plane.tsx'), 'ControlPlanePage'),
        ),
        page(
          '/audit',
          lazyRouteComponent(() => import('./pages/staff-audit.tsx'), 'StaffAuditPage'),
        ),
        ...nounPages(page),
      ]),
    ]),
    scrollRestoration: true,
    defaultPreload: false,
  })
}
