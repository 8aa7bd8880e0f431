/** Groups, other plans and rebuilds while everything is shaken, and what must hold of them afterwards. */
import type { Database } from '../../db/kit/open.ts'
import { listGroupMembers } from '../../db/server-group/index.ts'
import { unmetMembers } from '../../domain/node/placement.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Plan, Template } from '../../resources/catalog/index.ts'
import { Server } from '../../resources/server/index.ts'
import { ServerGroup } from '../../resources/server-group/index.ts'
import type { Account, Send } from './requests.ts'
import { KEY, PLAN, TEMPLATE, ZONES } from './catalog.ts'
import type { World } from './world.ts'

const LARGE_PLAN = 'large'
const OTHER_TEMPLATE = 'other-linux'

export function runChanges(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin } = world
  const { random } = scheduler
  const groups = new Map<string, Set<string>>(accounts.map(({ id }) => [id, new Set()]))
  let hosts = 0

  async function offer(): Promise<void> {
    await admin.create(Plan, {
      metadata: { name: LARGE_PLAN },
      spec: { family: 'starter', cores: 2, memoryMebibytes: 512, storageGibibytes: 2, priceMonthlyCents: 200 },
    })
    const template = await admin.get(Template, { name: TEMPLATE })
    if (template !== undefined)
      await admin.create(Template, { metadata: { name: OTHER_TEMPLATE }, spec: template.spec })
  }

  const customer = () =>
    scheduler.repeat({ least: 300, most: 4_300 }, isOver, async () => {
      const account = scheduler.pick(accounts)
      const server = account && scheduler.pick([...account.servers])
      const group = account && scheduler.pick([...(groups.get(account.id) ?? [])])
      if (account === undefined) return
      const dice = random.fraction()
      if (dice < 0.15) {
        const made = await send(account, 'POST', '/v1/server-groups', {
          name: `group ${(hosts += 1)}`,
          zone: scheduler.pick(ZONES),
          spread: scheduler.pick(['host', 'host', 'rack']),
          strict: random.fraction() < 0.7,
        })
        const id = (made as { readonly server_group?: { readonly id: string } } | undefined)?.server_group?.id
        if (id !== undefined) groups.get(account.id)?.add(id)
      } else if (dice < 0.25 && group !== undefined) await send(account, 'DELETE', `/v1/server-groups/${group}`)
      else if (dice < 0.55 && group !== undefined) {
        await send(account, 'POST', '/v1/servers', {
          zone: scheduler.pick(ZONES),
          hostname: `host-${(hosts += 1)}`,
          plan: PLAN,
          template: TEMPLATE,
          ssh_keys: [KEY],
          server_group_id: group,
          start: random.fraction() < 0.5,
        })
      } else if (server === undefined) return
      else if (dice < 0.78)
        await send(account, 'POST', `/v1/servers/${server}/change-plan`, {
          plan: scheduler.pick([PLAN, LARGE_PLAN]),
          grow_storage: random.fraction() < 0.5,
          start: random.fraction() < 0.5,
        })
      else
        await send(account, 'POST', `/v1/servers/${server}/rebuild`, {
          template: scheduler.pick([TEMPLATE, OTHER_TEMPLATE]),
          stop: random.fraction() < 0.6,
          ...(random.fraction() < 0.4 ? { user_data: '#!/bin/sh\n' } : {}),
        })
    })

  void offer().then(() => {
    void customer()
    void customer()
  })
}

/** Strict groups share nothing, groups are the same in both places, and every server has the size of its plan. */
export async function checkChanges(world: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const rows = await db.selectFrom('server_group').selectAll().execute()
  for (const { account_id: accountId, id, spread, is_strict } of rows) {
    const members = await listGroupMembers(db, { accountId, groupId: id })
    const unmet = unmetMembers(spread, members)
    if (is_strict && unmet.length > 0)
      violations.push(
        `the strict group ${id} has ${unmet.length} servers that share a ${spread}: ` +
          `${members.map(({ node }) => node).join(', ')}`,
      )
  }
  const named = (await world.admin.list(ServerGroup)).items.map(({ metadata }) => metadata.name)
  for (const { id } of rows) if (!named.includes(id)) violations.push(`group ${id} is claimed and not in Kubernetes`)
  for (const name of named)
    if (!rows.some(({ id }) => id === name)) violations.push(`group ${name} is in Kubernetes and not claimed`)
  for (const change of await db.selectFrom('size_change').selectAll().execute())
    violations.push(`the size of ${change.server_id} is being changed by ${change.operation_id}, and nobody does`)
  const plans = new Map((await world.admin.list(Plan)).items.map(({ metadata, spec }) => [metadata.name, spec]))
  const servers = (await world.admin.list(Server)).items
  for (const placement of await db.selectFrom('placement').selectAll().execute()) {
    const server = servers.find(
      ({ metadata }) =>
        metadata.namespace === accountNamespace(placement.account_id) && metadata.name === placement.server_id,
    )
    if (server === undefined) continue
    const { spec } = server
    const plan = plans.get(spec.plan)
    if (placement.cores !== plan?.cores || placement.memory_mebibytes !== plan.memoryMebibytes)
      violations.push(`server ${placement.server_id} has plan ${spec.plan} and room for ${placement.cores} cores`)
    if (spec.storageGibibytes !== undefined && placement.storage_gibibytes !== spec.storageGibibytes)
      violations.push(
        `server ${placement.server_id} shall have ${spec.storageGibibytes} GiB and room for ` +
          `${placement.storage_gibibytes}`,
      )
    if ((spec.serverGroupId ?? null) !== placement.group_id)
      violations.push(
        `server ${placement.server_id} is of group ${spec.serverGroupId ?? 'none'} and placed for ` +
          `${placement.group_id ?? 'none'}`,
      )
  }
  return violations
}
