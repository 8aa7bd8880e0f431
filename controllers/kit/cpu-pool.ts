/** Which processors a server may run on. */
import type { KubeObject } from '../../kit/kube/object.ts'
import { Plan } from '../../resources/catalog/index.ts'
import type { ServerSpec } from '../../resources/server/index.ts'
import type { Parts } from './parts.ts'

/** The pool that its plan requires; undefined for any, also while the server or its plan is not known. */
export const cpuPoolOf = (caches: Parts['caches'], server: KubeObject<ServerSpec> | undefined): string | undefined =>
  server === undefined ? undefined : caches.of(Plan).get({ name: server.spec.plan })?.spec.cpuPool
