/** What objects cost by the hour once they are what their specs say. Usage is metered from what is observed
 *  (`controllers/nouns/billing/billables.ts`), which a new object does not have yet. Resources that are billed by a
 *  measured size, such as backups, are not listed. */
import { isDeletion } from '../../domain/operations.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { Plan, type PlanSpec } from '../../resources/catalog/index.ts'
import { Edge } from '../../resources/edge/index.ts'
import { FloatingIp } from '../../resources/floating-ip/index.ts'
import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { LoadBalancer } from '../../resources/load-balancer/index.ts'
import type { Operable } from '../../resources/operation/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'

/** Units of a resource type, at the price of its plan or tier. */
export interface Cost {
  /** As in usage and invoices. */
  readonly resourceType: string
  /** Empty where there is none. */
  readonly plan: string
  /** In units of the price: GiB, or pieces. */
  readonly quantity: number
}

type PlanOf = (name: string) => PlanSpec | undefined

const cost = (resourceType: string, quantity = 1, plan = ''): Cost => ({ resourceType, plan, quantity })
const publicIpv4 = (isWanted: boolean): readonly Cost[] => (isWanted ? [cost('public_ipv4')] : [])

/** The tier of boot storages. */
const BOOT_TIER = 'standard'

interface Costing {
  readonly kind: ResourceType
  readonly of: (object: KubeObject, planOf: PlanOf) => readonly Cost[]
}

const costing = <Spec, Status>(
  kind: ResourceType<Spec, Status>,
  of: (object: KubeObject<Spec, Status>, planOf: PlanOf) => readonly Cost[],
): Costing => ({ kind, of: of as Costing['of'] }) // it is called with objects of `kind` only

/** The costs of a server of the plan, which includes part of its boot storage. */
export function costsOfServer(plan: string, isPublic: boolean): readonly Cost[] {
  return [cost('server', 1, plan), ...publicIpv4(isPublic)]
}

const COSTINGS: readonly Costing[] = [
  costing(Server, ({ spec, status }, planOf) => {
    const size = spec.storageGibibytes ?? status?.storageGibibytes ?? 0
    const above = size - (planOf(spec.plan)?.storageGibibytes ?? size)
    return [...costsOfServer(spec.plan, spec.publicIpv4), ...(above > 0 ? [cost('storage', above, BOOT_TIER)] : [])]
  }),
  costing(Storage, ({ spec }) => (spec.isBoot ? [] : [cost('storage', spec.sizeGibibytes, spec.tier)])),
  costing(FloatingIp, () => [cost('floating_ip')]),
  // Their machines are servers.
  costing(LoadBalancer, ({ spec }) => [cost('load_balancer'), ...publicIpv4(spec.publicIpv4)]),
  costing(Edge, () => [cost('edge')]),
  costing(KubernetesCluster, () => [cost('kubernetes_cluster')]),
]

/** The costs of the object without its machines; none of one that is being deleted. */
export function costsOf(object: KubeObject, planOf: PlanOf): readonly Cost[] {
  const spec = object.spec as Operable['spec'] | undefined // kinds without operations lack its members
  const operation = spec?.operation
  const isLeaving =
    object.metadata.deletionTimestamp !== undefined || (operation !== undefined && isDeletion(operation.kind))
  return isLeaving ? [] : (COSTINGS.find(({ kind }) => kind.kind === object.kind)?.of(object, planOf) ?? [])
}

/** Looks plans up among the objects of their kind. */
export const planIn =
  (find: (type: typeof Plan, key: { readonly name: string }) => KubeObject<PlanSpec> | undefined): PlanOf =>
  (name) =>
    find(Plan, { name })?.spec
