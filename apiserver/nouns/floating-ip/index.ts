import { floatingIpChanges } from '../../../changes/floating-ip.ts'
import type { FloatingIpFacts } from '../../../domain/floating-ip/rules.ts'
import { customerEndpoint } from '../../../kit/http/endpoint.ts'
import {
  FloatingIp,
  floatingIpFactsOf,
  type FloatingIpSpec,
  type FloatingIpStatus,
  type FloatingIpView,
  getFloatingIp,
  listFloatingIps,
  toFloatingIpView,
  usesOfFloatingIp,
} from '../../../resources/floating-ip/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { completeList } from '../../kit/list/page.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, type ObjectParts } from '../../kit/plain/objects.ts'

type FloatingIps = OperatedObjects<FloatingIpSpec, FloatingIpStatus, FloatingIpView, FloatingIpFacts>

/** More than any account may have. */
const LISTED_MAXIMUM = 10_000

const openFloatingIps = (parts: ObjectParts): FloatingIps =>
  openOperated(parts, {
    name: 'floating_ip',
    title: 'floating IP',
    resource: FloatingIp,
    surroundingsOf: () => ({}),
    toView: toFloatingIpView,
    factsOf: floatingIpFactsOf,
  })

export const floatingIp = noun<Parts & { readonly floatingIps: FloatingIps }, { readonly floatingIps: FloatingIps }>({
  name: 'floating_ip',
  kinds: [
    kind(FloatingIp, {
      access: 'write',
      target: 'floating_ip',
      admission: admissionOf(floatingIpChanges),
      usesOf: usesOfFloatingIp,
    }),
  ],
  open: (parts) => ({ floatingIps: openFloatingIps(parts) }),
  endpoints: ({ floatingIps, ...parts }) => [
    getObject(floatingIps, getFloatingIp),
    customerEndpoint(listFloatingIps, async ({ caller: { accountId } }) => {
      await floatingIps.catchUp(accountId)
      return completeList(floatingIps.page(accountId, {}, undefined, LISTED_MAXIMUM).map(floatingIps.viewOf))
    }),
    ...changeEndpoints(parts, floatingIpChanges, floatingIps),
  ],
  feeds: ({ floatingIps }) => [objectFeed('floating_ip', listFloatingIps, floatingIps)],
})
