import { routerChanges } from '../../../changes/router.ts'
import { getRouter, listRouters, Router } from '../../../resources/router/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, listObjects } from '../../kit/plain/objects.ts'
import { openRouters, type Routers } from './objects.ts'

export const router = noun<Parts & { readonly routers: Routers }, { readonly routers: Routers }>({
  name: 'router',
  kinds: [kind(Router, { access: 'write', target: 'router', admission: admissionOf(routerChanges) })],
  open: (parts) => ({ routers: openRouters(parts) }),
  endpoints: ({ routers, ...parts }) => [
    getObject(routers, getRouter),
    listObjects(parts, routers, listRouters, ({ zone }) => ({ fields: { zone } })),
    ...changeEndpoints(parts, routerChanges, routers),
  ],
})
