/** Servers that move while everything is shaken: requested, cancelled, cut off, never converging, and left in the
 *  middle at their deadline. */
import { Server } from '../../resources/server/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import type { Account, Send } from './requests.ts'
import { ZONES } from './catalog.ts'
import type { World } from './world.ts'

export function runMoves(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, network } = world
  const { random } = scheduler

  const customer = () =>
    scheduler.repeat({ least: 300, most: 3_300 }, isOver, async () => {
      const account = scheduler.pick(accounts)
      const server = account && scheduler.pick([...account.servers])
      if (account === undefined || server === undefined) return
      if (random.fraction() < 0.3)
        await send(account, 'PUT', `/v1/servers/${server}/migration-policy`, {
          migration_policy: scheduler.pick(['default', 'relaxed', 'strict']),
        })
      // Only a stopped server leaves its zone; what else asks for it is refused.
      const isLeaving = random.fraction() < 0.35
      if (isLeaving && random.fraction() < 0.5)
        await send(account, 'POST', `/v1/servers/${server}/stop`, { stop_type: 'hard' })
      if (isLeaving) await scheduler.pause(random.fraction() * 2_000)
      const operation = (
        await send(account, 'POST', `/v1/servers/${server}/move`, isLeaving ? { zone: scheduler.pick(ZONES) } : {})
      )?.operation?.id
      if (operation !== undefined && random.fraction() < 0.35) void cancelLater(account, operation)
      if (operation !== undefined && random.fraction() < 0.15) void hurry(account, server, operation)
    })

  async function cancelLater(account: Account, operation: string): Promise<void> {
    await scheduler.pause(random.fraction() * 4_000)
    await send(account, 'POST', `/v1/operations/${operation}/cancel`)
  }

  /** Its deadline comes at the worst moment. What is left then has to be resolved. */
  async function hurry(account: Account, server: string, operation: string): Promise<void> {
    await scheduler.pause(random.fraction() * 4_000)
    const key = { namespace: accountNamespace(account.id), name: server }
    const known = await world.admin.get(Server, key).catch(() => undefined)
    if (known?.spec.operation?.id !== operation) return
    const deadlineAt = scheduler.now().toISOString()
    await world.admin
      .patch(Server, key, {
        metadata: { resourceVersion: known.metadata.resourceVersion },
        spec: { operation: { deadlineAt } },
      })
      .catch(() => {})
  }

  const nature = () =>
    scheduler.repeat({ least: 500, most: 4_500 }, isOver, async () => {
      const host = scheduler.pick(world.hosts)
      if (host === undefined) return
      const dice = random.fraction()
      const guest = scheduler.pick(host.machine.running())
      if (dice < 0.2 && guest !== undefined)
        host.machine.keepGuestBusy(guest.name, random.fraction() < 0.5 ? 1_000 : 60_000)
      else if (dice < 0.4) {
        scheduler.note(`cut off ${host.name}`)
        network.cut(host.name)
        scheduler.after(random.fraction() * 8_000, () => network.mend(host.name))
      } else if (dice < 0.55) world.processes.find(({ name }) => name === `agent-${host.name}`)?.crash()
      else if (dice < 0.6) for (const guest of host.machine.running()) host.machine.crashGuest(guest.name)
      else if (dice < 0.65) host.machine.failNextStart('no memory left')
    })

  void customer()
  void customer()
  void nature()
}
