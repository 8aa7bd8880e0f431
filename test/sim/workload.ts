/** What people do to the cloud while it is shaken: two accounts that create, change and delete servers through the API,
 *  an operator with kubectl, and hardware that has its own ideas. Everything that was answered is remembered for the
 *  checks. */
import { createToken } from '../../db/identity/index.ts'
import { openChain } from '../../db/audit/index.ts'
import { openQuotas } from '../../db/account/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { formatToken } from '../../kit/sys/token-format.ts'
import { newBase62, newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Server } from '../../resources/server/index.ts'
import { runAddresses } from './addresses.ts'
import { runBackups } from './backups.ts'
import { runDatabases } from './databases.ts'
import { runClusters } from './clusters.ts'
import { runChanges } from './changes.ts'
import { runImages } from './images.ts'
import { runMachines } from './machines.ts'
import { runMoves } from './moves.ts'
import { runStorages } from './storages.ts'
import { runNetworks } from './networks.ts'
import { runObjects } from './objects.ts'
import { runPorts } from './ports.ts'
import { runOperators, runStorageMoves } from './operators.ts'
import { KEY, PLAN, TEMPLATE, ZONES } from './catalog.ts'
import { type Account, type AnswerBody, ask, type History, type Send } from './requests.ts'
import type { World } from './world.ts'
import { setQuotas } from '../accounts.ts'

const SERVERS_LIMIT = 5
/** With machines of edges and load balancers. */
const MACHINES_SERVERS_LIMIT = 14
const HOSTNAMES = ['web', 'db', 'cache', 'mail', 'build', 'proxy']

export async function openAccounts(db: Database, world: World, count: number): Promise<Account[]> {
  const { random } = world.scheduler
  const accounts: Account[] = []
  for (let number = 1; number <= count; number++) {
    const [id, userId] = [newUuid(random), newUuid(random)]
    const token = formatToken('read_write', newBase62(random, 40))
    const now = world.scheduler.now()
    await db.transaction().execute(async (tx) => {
      await tx
        .insertInto('account')
        .values({ id, name: `Account ${number}`, created_at: now })
        .execute()
      await tx
        .insertInto('app_user')
        .values({
          id: userId,
          email: `owner${number}@example.com`,
          name: null,
          password_hash: null,
          email_verified_at: now,
          own_account_id: id,
          active_account_id: id,
          created_at: now,
        })
        .execute()
      await tx
        .insertInto('membership')
        .values({ account_id: id, user_id: userId, role: 'owner', joined_at: now })
        .execute()
      await tx
        .insertInto('credit')
        .values({
          id: newUuid(random),
          account_id: id,
          label: 'Welcome',
          source: 'sign_up',
          amount_cents: 24_900,
          created_at: now,
          expires_at: new Date(now.getTime() + 5_184_000_000),
        })
        .execute()
      await openChain(tx, id)
      await openQuotas(tx, id)
      await setQuotas(tx, world.guests === undefined ? SERVERS_LIMIT : MACHINES_SERVERS_LIMIT, {
        accountId: id,
        name: 'servers',
      })
      await createToken(tx, {
        id: newUuid(random),
        accountId: id,
        userId,
        name: 'robot',
        token,
        scope: 'read_write',
        allowedCidrs: [],
        createdAt: now,
        expiresAt: null,
      })
    })
    accounts.push({ id, token, servers: new Set() })
  }
  return accounts
}

/** Starts the workload; it goes on until `isOver`. */
export function runWorkload(world: World, accounts: readonly Account[], isOver: () => boolean): History {
  const history: History = { exchanges: [], operations: new Map(), foreignReads: [] }
  const send = sendInto(world, history)
  const [first, second] = [accounts[0], accounts[1]]
  if (first === undefined || second === undefined) throw new Error('the workload needs two accounts')
  if (world.only !== undefined) {
    runOnly(world, accounts, history, isOver)
    return history
  }
  runCustomer({ world, account: first, other: second, history, send, isOver })
  runCustomer({ world, account: first, other: second, history, send, isOver })
  runCustomer({ world, account: second, other: first, history, send, isOver })
  runKubectl(world, accounts, isOver)
  runNature(world, isOver)
  runMoves(world, accounts, send, isOver)
  runChanges(world, accounts, send, isOver)
  runStorages(world, accounts, send, isOver)
  runImages(world, accounts, send, isOver)
  runAddresses(world, accounts, send, isOver)
  runNetworks(world, accounts, send, isOver)
  runPorts(world, accounts, send, isOver)
  runOperators(world, isOver)
  runStorageMoves(world, isOver)
  return history
}

/** The work of a separate world. */
function runOnly(world: World, accounts: readonly Account[], history: History, isOver: () => boolean): void {
  const send = sendInto(world, history)
  if (world.only === 'objects') {
    world.objects = runObjects(world, accounts, send, isOver)
    return
  }
  if (world.only === 'databases') world.databases = runDatabases(world, accounts, send, isOver)
  else if (world.only === 'kubernetes') runClusters(world, accounts, send, isOver)
  else if (world.only === 'balancers') {
    runNetworks(world, accounts, send, isOver)
    runMachines(world, accounts, send, isOver)
  } else runDisks(world, accounts, history, isOver)
  runNature(world, isOver)
  runOperators(world, isOver)
}

/** Storages and images of an account that has servers, and backups of all of them. */
function runDisks(world: World, accounts: readonly Account[], history: History, isOver: () => boolean): void {
  const send = sendInto(world, history)
  const [account, other] = [accounts[0], accounts[1]]
  if (account === undefined || other === undefined) throw new Error('the workload needs two accounts')
  runCustomer({ world, account, other, history, send, isOver })
  runStorages(world, accounts, send, isOver)
  runImages(world, accounts, send, isOver)
  runBackups(world, accounts, send, isOver)
  runStorageMoves(world, isOver)
}

/** Sends requests, and adds what was answered to the history. */
function sendInto(world: World, history: History): Send {
  return async (account, method, path, body) => {
    const answer = await ask(world, account, method, path, body)
    if (answer === undefined) return undefined
    const { response, json } = answer
    world.scheduler.note(`answer ${method} ${path} ${response.status}`)
    history.exchanges.push({
      account: account.id,
      method,
      path,
      status: response.status,
      requestId: String(response.headers['x-request-id']),
      reason: json?.reason,
    })
    if (json?.operation?.id !== undefined && response.status === 202)
      history.operations.set(json.operation.id, account.id)
    if (json?.server?.id !== undefined) account.servers.add(json.server.id)
    return json as AnswerBody | undefined // what is read of it
  }
}

interface CustomerOptions {
  readonly world: World
  readonly account: Account
  /** Whose servers are not the account's to see. */
  readonly other: Account
  readonly history: History
  readonly send: Send
  readonly isOver: () => boolean
}

function runCustomer({ world, account, other, history, send, isOver }: CustomerOptions): void {
  const { scheduler } = world
  const { random } = scheduler
  void scheduler.repeat({ least: 200, most: 6_200 }, isOver, async () => {
    const server = scheduler.pick([...account.servers])
    const dice = random.fraction()
    if (server === undefined || dice < 0.3) {
      await send(account, 'POST', '/v1/servers', {
        zone: scheduler.pick(ZONES),
        hostname: scheduler.pick(HOSTNAMES),
        plan: PLAN,
        template: TEMPLATE,
        ssh_keys: [KEY],
        start: random.fraction() < 0.8,
        public_ipv4: random.fraction() < 0.3,
        ...(random.fraction() < 0.3 ? { user_data: '#!/bin/sh\necho hello\n' } : {}),
      })
    } else if (dice < 0.42) await send(account, 'DELETE', `/v1/servers/${server}`)
    else if (dice < 0.54) {
      await send(account, 'POST', `/v1/servers/${server}/stop`, {
        stop_type: scheduler.pick(['soft', 'hard']),
        timeout_seconds: 5,
        timeout_action: scheduler.pick(['fail', 'hard']),
      })
    } else if (dice < 0.66) await send(account, 'POST', `/v1/servers/${server}/start`)
    else if (dice < 0.76) await send(account, 'POST', `/v1/servers/${server}/restart`, { timeout_seconds: 5 })
    else if (dice < 0.8)
      await send(account, 'PATCH', `/v1/servers/${server}`, { title: `Title ${Math.floor(random.fraction() * 100)}` })
    else if (dice < 0.85)
      await send(account, 'PUT', `/v1/servers/${server}/metadata`, { enabled: random.fraction() < 0.5 })
    else if (dice < 0.87)
      await send(account, 'PUT', `/v1/servers/${server}/ha-policy`, {
        ha_policy: scheduler.pick(['restart', 'none']),
      })
    else if (dice < 0.9) await send(account, 'GET', '/v1/servers')
    else {
      const foreign = scheduler.pick([...other.servers])
      if (foreign === undefined) return
      const path = `/v1/servers/${foreign}`
      const answer = await ask(world, account, scheduler.pick(['GET', 'DELETE']) ?? 'GET', path)
      if (answer !== undefined) history.foreignReads.push({ status: answer.response.status, path })
    }
  })
}

function runKubectl(world: World, accounts: readonly Account[], isOver: () => boolean): void {
  const { scheduler } = world
  const { random } = scheduler
  void scheduler.repeat({ least: 5_000, most: 25_000 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    const server = account && scheduler.pick([...account.servers])
    if (account === undefined || server === undefined) return
    const key = { namespace: accountNamespace(account.id), name: server }
    const dice = random.fraction()
    // What does not exist or may not be changed now is kubectl's error, not ours.
    if (dice < 0.7)
      await world.admin
        .patch(Server, key, { spec: { desiredPower: scheduler.pick(['running', 'stopped']) } })
        .catch(() => {})
    else if (!(await hasBootSnapshots(world.db, account.id, server)))
      await world.admin.delete(Server, key).catch(() => {})
  })
}

/** As the admission webhook, which is not called here, asks. */
const hasBootSnapshots = async (db: Database, accountId: string, serverId: string): Promise<boolean> =>
  (await db
    .selectFrom('storage_hold')
    .select('holder')
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .executeTakeFirst()) !== undefined

/** Guests, hosts, processes and their network have accidents. */
function runNature(world: World, isOver: () => boolean): void {
  const { scheduler } = world
  const { random } = scheduler
  void scheduler.repeat({ least: 3_000, most: 18_000 }, isOver, async () => {
    const host = scheduler.pick(world.hosts)
    const guest = host && scheduler.pick(host.machine.running())
    if (host === undefined) return
    const dice = random.fraction()
    if (dice < 0.2 && guest !== undefined) host.machine.crashGuest(guest.name)
    else if (dice < 0.4 && guest !== undefined) host.machine.powerOffGuest(guest.name)
    else if (dice < 0.5 && guest !== undefined) host.machine.hangGuest(guest.name)
    else if (dice < 0.6) host.machine.failNextStart('no memory left')
    else if (dice < 0.65) world.reboot(host)
    else if (dice < 0.8)
      world.partition(scheduler.pick(world.processes)?.name ?? '', 2_000 + random.fraction() * 40_000)
    else if (dice < 0.9) scheduler.pick(world.processes.filter((process) => process.isRunning))?.crash()
  })
}
