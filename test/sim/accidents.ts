/** The faults `namespaceDeleted` and `finalizersTaken`: somebody with all rights deletes the namespace of an account or
 *  a node with kubectl, deletes what hosts hold, or takes the platform's finalizers. Nothing of a customer may end by
 *  that. Once in some worlds the webhook is switched off for the moment in which a namespace is deleted; it is taken
 *  back later, with all that was in it. */
import { Namespace, type ResourceType } from '../../kit/kube/object.ts'
import { ApiError } from '../../kit/kube/store.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance, nodeNamespace, Volume } from '../../resources/instance/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import type { Account } from './requests.ts'
import type { World } from './world.ts'

/** In so many worlds the webhook is away once, for the deletion of a namespace, within so long. */
const PAST_WEBHOOK_SHARE = 0.5
const PAST_WEBHOOK_MILLISECONDS = 30_000
const TAKEN_BACK_MILLISECONDS = 20_000
/** Customers' own kinds and those that hosts hold. */
export const FINALIZED: readonly ResourceType[] = [Server, Storage, Instance, Volume]
export const HELD_BY_HOSTS: readonly ResourceType[] = [Instance, Volume]

/** What Kubernetes refuses is what is meant to happen; answers whether it did. */
export async function isRefused(write: Promise<unknown>): Promise<boolean> {
  try {
    await write
    return false
  } catch (error) {
    if (error instanceof ApiError) return true
    throw error
  }
}

export function runAccidents(world: World, accounts: readonly Account[], isOver: () => boolean): void {
  const { scheduler, person, admin, hosts } = world
  const { random } = scheduler
  const namespaces = [
    ...accounts.map(({ id }) => accountNamespace(id)),
    ...hosts.map(({ name }) => nodeNamespace(name)),
  ]

  void scheduler.repeat({ least: 1_000, most: 5_000 }, isOver, async () => {
    if (random.fraction() < 0.3) {
      const name = scheduler.pick(namespaces) ?? ''
      scheduler.note(`fault namespaceDeleted ${name}`)
      await isRefused(person.delete(Namespace, { name }))
      return
    }
    const isDeletion = random.fraction() < 0.5
    const type = scheduler.pick(isDeletion ? HELD_BY_HOSTS : FINALIZED) ?? Server
    const { metadata } = scheduler.pick((await admin.list(type).catch(() => ({ items: [] }))).items) ?? {}
    if (metadata === undefined) return
    const { namespace = '', name } = metadata
    scheduler.note(`fault ${isDeletion ? 'heldDeleted' : 'finalizersTaken'} ${type.kind}`)
    await isRefused(
      isDeletion
        ? person.delete(type, { namespace, name })
        : person.patch(type, { namespace, name }, { metadata: { finalizers: null } }),
    )
  })

  if (random.fraction() >= PAST_WEBHOOK_SHARE) return
  scheduler.after(random.fraction() * PAST_WEBHOOK_MILLISECONDS, () => {
    const name = scheduler.pick(namespaces) ?? ''
    scheduler.note(`fault namespaceDeleted ${name} past the webhook`)
    void isRefused(admin.delete(Namespace, { name })).then((isNotThere) => {
      if (!isNotThere) scheduler.after(TAKEN_BACK_MILLISECONDS, () => void world.takeBack(name))
    })
  })
}
