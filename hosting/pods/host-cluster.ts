/** The cluster that runs one control plane's pods. A manifest is applied again when it changes, and from time to time,
 *  in case somebody has changed the object. */
import { Unavailable } from '../../domain/problem.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { isNotFound, type Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { Deployment, type Manifest, Pod, type RolloutStatus, StatefulSet } from './kinds.ts'
import { PART_LABEL } from './names.ts'

const APPLY_ANEW_MILLISECONDS = 60_000

interface AppliedObject {
  readonly text: string
  readonly at: number
  readonly object: KubeObject
}

export class HostCluster {
  readonly #cluster: Store
  readonly #namespace: string
  readonly #clock: Clock
  readonly #applied = new Map<string, AppliedObject>()

  constructor(cluster: Store, namespace: string, clock: Clock) {
    this.#cluster = cluster
    this.#namespace = namespace
    this.#clock = clock
  }

  /** Applies them in this order. */
  async apply(manifests: readonly Manifest[]): Promise<void> {
    for (const { type, object } of manifests) {
      const key = `${type.kind} ${object.metadata.name}`
      const [text, now] = [JSON.stringify(object), this.#clock.monotonicMilliseconds()]
      const known = this.#applied.get(key)
      if (known?.text === text && now - known.at < APPLY_ANEW_MILLISECONDS) continue
      // The manifests of kinds without a spec have none either.
      const draft = object as Manifest['object'] & { readonly spec: object }
      this.#applied.set(key, { text, at: now, object: await this.#cluster.apply(type, draft) })
    }
  }

  get<Spec, Status>(type: ResourceType<Spec, Status>, name: string): Promise<KubeObject<Spec, Status> | undefined> {
    return this.#cluster.get(type, this.#keyOf(type, name))
  }

  /** Also removes dependent objects. Does nothing when it does not exist. */
  async remove(type: ResourceType, name: string): Promise<void> {
    this.#applied.delete(`${type.kind} ${name}`)
    await this.#cluster.delete(type, this.#keyOf(type, name), { propagation: 'Background' })
  }

  async podsOf(parts: readonly string[]) {
    const labelSelector = `${PART_LABEL} in (${parts.join(',')})`
    return (await this.#cluster.list(Pod, { namespace: this.#namespace, labelSelector })).items
  }

  async rollouts(): Promise<ReadonlyMap<string, Rollout>> {
    const options = { namespace: this.#namespace }
    const [sets, deployments] = [
      await this.#cluster.list(StatefulSet, options),
      await this.#cluster.list(Deployment, options),
    ]
    return new Map([...sets.items, ...deployments.items].map((each) => [each.metadata.name, rolloutOf(each)]))
  }

  #keyOf(type: ResourceType, name: string) {
    return type.scope === 'Cluster' ? { name } : { namespace: this.#namespace, name }
  }
}

export interface Rollout {
  readonly ready: number
  /** All pods match the last manifest and are ready, and no others are left. */
  readonly isWhole: boolean
}

function rolloutOf({
  metadata,
  spec: { replicas: wanted = 1 },
  status = {},
}: KubeObject<{ readonly replicas?: number }, RolloutStatus>): Rollout {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0 } = status
  const counts = [replicas, updatedReplicas, readyReplicas, availableReplicas]
  return {
    ready: Math.min(wanted, readyReplicas),
    isWhole: observedGeneration >= (metadata.generation ?? 0) && counts.every((count) => count === wanted),
  }
}

/** The cluster does not answer now, or not as expected. This does not mean that the request was wrong. */
export const isAway = (error: unknown): boolean => error instanceof Unavailable || isNotFound(error)
