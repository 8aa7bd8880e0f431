import { Router } from '../../resources/router/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { routerAdmission } from './admission.ts'
import { routerEndpoints, type RouterParts } from './endpoints.ts'
import { openRouters, type Routers } from './routers.ts'

export const router = noun<RouterParts, { readonly routers: Routers }>({
  name: 'router',
  kinds: [kind(Router, { access: 'write', target: 'router', admission: routerAdmission })],
  open: (parts) => ({ routers: openRouters(parts) }),
  endpoints: routerEndpoints,
})
