/** The offered versions of Kubernetes, and the price of a control plane. */
import { endOfLife, minorsOf, newestRelease, nextMinor } from '../../../domain/kubernetes-cluster/rules.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../../resources/catalog/index.ts'
import { type KubernetesVersionView, listKubernetesVersions } from '../../../resources/kubernetes-cluster/index.ts'
import { Price, type PriceSpec } from '../../../resources/price/index.ts'
import type { Parts } from '../../kit/parts.ts'

export function versionsEndpoint({ caches }: Pick<Parts, 'caches'>): Endpoint {
  const [zones, prices] = [caches.of(Zone), caches.of(Price)]
  return customerEndpoint(listKubernetesVersions, async ({ now }) => ({
    status: 200,
    body: { items: versionsOf(zones.list(), prices.list(), now), next_cursor: null },
  }))
}

/** Of all zones together. */
function versionsOf(
  zones: readonly KubeObject<ZoneSpec, ZoneStatus>[],
  prices: readonly KubeObject<PriceSpec>[],
  now: Date,
): readonly KubernetesVersionView[] {
  const releases = zones.flatMap(({ status }) => status?.kubernetesReleases ?? [])
  const current = prices
    .filter(({ spec }) => spec.resourceType === 'kubernetes_cluster' && Date.parse(spec.validFrom) <= now.getTime())
    .toSorted((one, other) => Date.parse(other.spec.validFrom) - Date.parse(one.spec.validFrom))
  const cents = Math.round((current[0]?.spec.monthlyMillicents ?? 0) / 1_000)
  return minorsOf(releases).map((version, index) => {
    const end = endOfLife(version)
    const next = nextMinor(version, releases)
    return {
      version,
      kubernetes_version: newestRelease(version, releases) ?? '',
      status: end !== undefined && end <= now ? 'expired' : 'supported',
      is_default: index === 0,
      end_of_life_at: end?.toISOString() ?? null,
      upgradable_to: next === undefined ? [] : [next],
      control_plane_price_monthly_cents: cents,
    }
  })
}
