/** What the stream of changes sends, with the types of the API. */
import type { operations, paths } from './schema.ts'

type ItemOf<Path extends keyof paths> = paths[Path] extends {
  readonly get: {
    readonly responses: {
      readonly 200: { readonly content: { readonly 'application/json': { readonly items: readonly (infer Item)[] } } }
    }
  }
}
  ? Item
  : never

/** What the stream sends of each type: the items of its list. */
export interface ChangedItems {
  readonly server: ItemOf<'/v1/servers'>
  readonly server_group: ItemOf<'/v1/server-groups'>
  readonly storage: ItemOf<'/v1/storages'>
  readonly snapshot: ItemOf<'/v1/snapshots'>
  readonly backup: ItemOf<'/v1/backups'>
  readonly custom_image: ItemOf<'/v1/custom-images'>
  readonly network: ItemOf<'/v1/networks'>
  readonly router: ItemOf<'/v1/routers'>
  readonly floating_ip: ItemOf<'/v1/floating-ips'>
  readonly load_balancer: ItemOf<'/v1/load-balancers'>
  readonly edge: ItemOf<'/v1/edges'>
  readonly database: ItemOf<'/v1/databases'>
  readonly kubernetes_cluster: ItemOf<'/v1/kubernetes-clusters'>
  readonly node_pool: NonNullable<ItemOf<'/v1/kubernetes-clusters'>['node_pools']>[number]
  readonly dev_cluster: ItemOf<'/v1/dev-clusters'>
  readonly playground: ItemOf<'/v1/playgrounds'>
  readonly object_storage: ItemOf<'/v1/object-storage'>
  readonly ssh_key: ItemOf<'/v1/ssh-keys'>
  readonly init_script: ItemOf<'/v1/init-scripts'>
  readonly operation: ItemOf<'/v1/operations'>
}
export type ChangeType = keyof ChangedItems

interface Place {
  /** Of everything that was received so far. */
  readonly cursor: string
}

/** Changes are missing before those that follow: read again what you show. */
export interface Reset extends Place {
  readonly event: 'reset'
  readonly reason: NonNullable<operations['read_changes']['responses'][200]['content']['application/json']['reset']>
}

/** `set` has the new state; `changed` means: read it again. */
export type Change<Type extends ChangeType = ChangeType> = {
  [Each in Type]: Place & {
    readonly event: 'change'
    readonly type: Each
    readonly id: string
  } & (
      | { readonly is: 'set'; readonly item: ChangedItems[Each] }
      | { readonly is: 'removed' | 'changed'; readonly item: null }
    )
}[Type]

/** Of something that the stream does not send the state of, such as a member. */
export interface OtherChange extends Place {
  readonly event: 'change'
  readonly type: string
  readonly id: string
  readonly is: 'changed'
  readonly item: null
}
