/** Creating a server: the references of the request are looked up, everything it needs is claimed, and one object is
 *  written. */
import { requireScheduleZone } from '../../../changes/kit/backups.ts'
import { type Size, sizeOf, systemOf } from '../../../changes/kit/system.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { demandOf, requireFilter, serverChanges } from '../../../changes/server.ts'
import { defined } from '../../../domain/defined.ts'
import { badField, badRequest, type FieldError } from '../../../domain/problem.ts'
import type { PoolUse } from '../../../domain/public-pool/rules.ts'
import { SSH_KEYS_PER_SERVER_MAXIMUM } from '../../../domain/ssh-key/rules.ts'
import { parsePublicKey } from '../../../domain/ssh-key/rules.ts'
import { readUserData, runsProgramsOnly } from '../../../domain/server/user-data.ts'
import { findInitScript } from '../../../db/init-script/index.ts'
import { type ChangeIntent, recordIntents } from '../../../db/change/index.ts'
import { type GroupCommit, openGroupCommit } from '../../../db/kit/group-commit.ts'
import type { InterfaceDemand } from '../../../db/network-interface/index.ts'
import {
  batchKeyOf,
  claimServers,
  releaseServer,
  type ServerClaims,
  type ServerDemand,
} from '../../../db/server/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { type KubeObject, Namespace, Secret } from '../../../kit/kube/object.ts'
import { isAlreadyExists } from '../../../kit/kube/store.ts'
import { newOrderedUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { ACCOUNT_LABEL, SERVER_LABEL } from '../../../resources/kit/labels.ts'
import { Template } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import {
  type CreateServer,
  createServer,
  Server,
  type ServerSpec,
  type ServerStatus,
  storedFirewall,
  toFirewall,
} from '../../../resources/server/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { namedTarget, toOperationView } from '../../../resources/operation/index.ts'
import { accept, newStanza, OutcomeUnknown } from '../../kit/change/accept.ts'
import { namingAlternatives } from './alternatives.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { ensureNamespace } from '../../kit/change/namespaces.ts'
import type { Parts } from '../../kit/parts.ts'
import { inWords, WORDS } from '../../kit/words.ts'
import { chooseNetworks, entryOf } from './interfaces.ts'
import type { Servers } from './objects.ts'

export const createServerEndpoint = (parts: Parts, servers: Servers): Endpoint => {
  parts.caches.of(Namespace)
  parts.caches.of(Template)
  const claim = openClaims(parts)
  return customerEndpoint(createServer, (call) =>
    inWords(WORDS.rest, () => create({ ...parts, claim }, servers, call)).catch(
      namingAlternatives(parts, call.body, call.now),
    ),
  )
}

interface ClaimRequest {
  readonly demand: ServerDemand
  readonly intent: ChangeIntent
}

/** Servers of an account wait for its quotas anyway, so similar ones that are requested at the same time are claimed in
 *  one transaction. */
const openClaims = ({ db, clock, random }: Parts): GroupCommit<ClaimRequest, ServerClaims> =>
  openGroupCommit(db, async (tx, requests) => {
    const claims = await claimServers(
      tx,
      requests.map(({ demand }) => demand),
      { now: clock.now(), random },
    )
    await recordIntents(
      tx,
      requests.map(({ intent }) => intent),
    )
    return claims
  })

/** What the answer shows before the controller has written a status. */
function claimedArguments({ macAddress, addresses }: ServerClaims): Record<string, string> {
  const addressOf = (use: PoolUse) => addresses.find((held) => held.use === use)?.address
  const [ipv4, ipv6] = [addressOf('server_ipv4'), addressOf('server_ipv6_prefix')]
  return {
    mac_address: macAddress,
    ...defined({ public_ipv4: ipv4, public_ipv6: ipv6 }),
  }
}

type CreateCall = Call<typeof createServer, Customer>

async function create(
  parts: Parts & { readonly claim: GroupCommit<ClaimRequest, ServerClaims> },
  servers: Servers,
  call: CreateCall,
): Promise<Answer> {
  const {
    caller: { accountId, actor },
    body,
    request,
    now,
  } = call
  const { size, networks, ...choice } = await choose(parts, call)
  const userData = await chooseUserData(parts, accountId, body)
  // Lists are newest first by second of creation, then by id: the id keeps the order within the second.
  const id = newOrderedUuid(parts.random, now)
  const operation = newStanza(parts, 'server.create', { actor, requestId: request.requestId, now })
  const secretName = userData === undefined ? undefined : `${id}-user-data`
  const namespace = accountNamespace(accountId)
  const spec = { ...choice.spec, ...defined({ userDataSecretName: secretName }) }
  const draft = (claims: ServerClaims) => ({
    metadata: { name: id, namespace, labels: { [ACCOUNT_LABEL]: accountId }, finalizers: [finalizerOf(Server)] },
    spec: { ...spec, operation: { ...operation, arguments: claimedArguments(claims) } },
  })
  const demand = demandOf({ accountId, id, spec }, size, networks)
  const server = await accept(parts, {
    id: operation.id,
    accountId,
    resource: { type: 'server', id },
    operation,
    audit: auditEntryOf(call, {
      resourceId: id,
      detail: serverChanges.create.detail(spec, id),
    }),
    claimTogether: (intent) => parts.claim(batchKeyOf(demand), { demand, intent }),
    release: (tx) => releaseServer(tx, { accountId, serverId: id }),
    write: async (claims) => {
      if (claims === undefined) throw new Error('a server is written with its claims')
      await ensureNamespace(parts, accountId)
      if (secretName !== undefined)
        await writeUserData(parts, { namespace, name: secretName, serverId: id, text: userData ?? '' })
      return parts.store.create(Server, draft(claims))
    },
    read: () => parts.store.get(Server, { namespace, name: id }),
    wasApplied: (object) => object.spec.operation?.id === operation.id || object.status !== undefined,
  }).catch(async (error: unknown) => {
    if (secretName !== undefined && !(error instanceof OutcomeUnknown))
      await parts.store.delete(Secret, { namespace, name: secretName }).catch(() => {})
    throw error
  })
  servers.cache.apply(server)
  if (secretName !== undefined) await giveToServer(parts, { namespace, name: secretName }, server)
  const view = servers.viewOf(server)
  return {
    status: 202,
    body: {
      server: view,
      operation:
        view.active_operation ?? toOperationView(pendingOf(operation), namedTarget('server', { name: id, spec })),
    },
  }
}

interface Choice {
  /** Without user data. */
  readonly spec: ServerSpec
  readonly size: Size
  readonly networks: readonly InterfaceDemand[]
}

/** What the request asks for, with what it leaves to be found. Throws the refusals of the rules. */
async function choose(parts: Parts, { caller: { accountId }, body, now }: CreateCall): Promise<Choice> {
  const world = worldOf(parts.caches)
  await readImage(parts, accountId, body.custom_image_id)
  const spec = specOf(body)
  const size = sizeOf(world, spec, systemOf(world, { accountId, now }, spec))
  const networks = await chooseNetworks(parts, accountId, body.networks)
  requireFilter(world, spec)
  requireScheduleZone(world, spec)
  const sshKeys = await chooseKeys(parts, accountId, body)
  return { spec: { ...spec, sshKeys: [...sshKeys], storageGibibytes: size.storageGibibytes }, size, networks }
}

const pendingOf = (operation: OperationStanza) =>
  ({
    ...operation,
    status: 'pending',
    step: '',
    stepIndex: 0,
    stepCount: 0,
    error: '',
    createdAt: operation.requestedAt,
  }) as const

/** For people: who gets keys, and where they may come from. */
interface KeyHolder {
  readonly title: string
  readonly hint: string
}
const SERVER_WITH_KEYS: KeyHolder = { title: 'a server', hint: 'add one to the account, or give ssh_keys' }

/** The texts of the keys: the given ones, the named ones, or every key of the account. Throws 400 for invalid and
 *  unknown ones, and when there are none. */
export async function chooseKeys(
  { db }: Pick<Parts, 'db'>,
  accountId: string,
  body: Pick<CreateServer, 'ssh_keys' | 'ssh_key_ids'>,
  { title, hint }: KeyHolder = SERVER_WITH_KEYS,
): Promise<readonly string[]> {
  const errors: FieldError[] = []
  const inlineKeys = (body.ssh_keys ?? []).flatMap((text, index) => {
    const key = parsePublicKey(text)
    if (typeof key !== 'string') return [key.text]
    errors.push({ field: `ssh_keys.${index}`, detail: key })
    return []
  })
  if (errors.length > 0) throw badRequest(`${errors[0]?.field} ${errors[0]?.detail}.`, errors)
  const wantsAll = body.ssh_keys === undefined && body.ssh_key_ids === undefined
  const isNamed = wantsAll || (body.ssh_key_ids ?? []).length > 0
  const rows = isNamed
    ? await db
        .selectFrom('ssh_key')
        .select(['id', 'public_key'])
        .where('account_id', '=', accountId)
        .orderBy('created_at')
        .orderBy('id')
        .execute()
    : []
  const unknown = (body.ssh_key_ids ?? []).find((id) => !rows.some((row) => row.id === id))
  if (unknown !== undefined) throw badField('ssh_key_ids', `the account has no key ${unknown}`)
  const named = rows.filter((row) => wantsAll || body.ssh_key_ids?.includes(row.id)).map((row) => row.public_key)
  const keys = [...new Set([...inlineKeys, ...named])]
  if (keys.length === 0) throw badField('ssh_key_ids', `${title} needs at least one SSH key: ${hint}`)
  if (keys.length > SSH_KEYS_PER_SERVER_MAXIMUM)
    throw badField('ssh_key_ids', `${title} takes at most ${SSH_KEYS_PER_SERVER_MAXIMUM} keys`)
  return keys
}

/** The user data of the first boot: the given text, or the current init script. Throws 400 for both, for a script that
 *  is not the account's, and for a script that the template cannot run. */
export async function chooseUserData(
  parts: Pick<Parts, 'caches' | 'db'>,
  accountId: string,
  { user_data, init_script_id, template }: Pick<CreateServer, 'user_data' | 'init_script_id' | 'template'>,
): Promise<string | undefined> {
  if (init_script_id === undefined || init_script_id === null)
    return user_data === undefined
      ? undefined
      : requireRunnable(parts, template, { field: 'user_data', text: user_data })
  if (user_data !== undefined) throw badField('init_script_id', 'cannot be given together with user_data')
  const script = await findInitScript(parts.db, accountId, init_script_id)
  if (script === undefined) throw badField('init_script_id', 'the account has no such init script')
  return requireRunnable(parts, template, { field: 'init_script_id', text: script.content })
}

/** The controllers decode it in the same way for the guest: it is stored as given. */
function requireRunnable(
  { caches }: Pick<Parts, 'caches'>,
  template: string | undefined,
  { field, text }: { readonly field: string; readonly text: string },
): string {
  const built = template === undefined ? undefined : caches.of(Template).get({ name: template })?.spec.image.built
  const read = readUserData(Buffer.from(text), { isProgramsOnly: runsProgramsOnly(built) })
  if ('fault' in read) throw badField(field, read.fault)
  return text
}

/** Without what is looked up: keys, user data and the size of its boot storage. */
const specOf = (body: CreateServer): ServerSpec => ({
  hostname: body.hostname,
  title: body.title,
  zone: body.zone,
  plan: body.plan,
  ...defined({
    template: body.template,
    customImageId: body.custom_image_id ?? undefined,
    initScriptId: body.init_script_id ?? undefined,
    serverGroupId: body.server_group_id ?? undefined,
    backupSchedule: body.backup_schedule ?? undefined,
    storageGibibytes: body.storage_gibibytes,
  }),
  labels: body.labels,
  desiredPower: body.start ? 'running' : 'stopped',
  sshKeys: [],
  haPolicy: body.ha_policy,
  migrationPolicy: body.migration_policy,
  publicIpv4: body.public_ipv4,
  ...(body.networks.length === 0 ? {} : { networks: body.networks.map(entryOf) }),
  ...(body.firewall == null ? {} : { firewall: storedFirewall(toFirewall(body.firewall)) }),
  metadataEnabled: body.metadata_enabled,
  isProtected: body.is_protected,
})

/** Brings a custom image into the caches, which may not know it yet. */
export async function readImage(
  { store, caches }: Pick<Parts, 'store' | 'caches'>,
  accountId: string,
  name: string | null | undefined,
): Promise<void> {
  if (typeof name !== 'string') return
  const image = await store.get(CustomImage, { namespace: accountNamespace(accountId), name })
  if (image !== undefined) caches.apply(CustomImage, image)
}

interface UserData {
  readonly namespace: string
  readonly name: string
  readonly serverId: string
  /** The server, if it exists already: the Secret is deleted with it. */
  readonly owner?: KubeObject
  readonly text: string
}

/** Does nothing when the Secret exists: its name is that of one server and one request. */
export async function writeUserData(
  { store }: Pick<Parts, 'store'>,
  { namespace, name, serverId, owner, text }: UserData,
): Promise<void> {
  const draft = {
    metadata: {
      name,
      namespace,
      labels: { [SERVER_LABEL]: serverId },
      ...(owner === undefined ? {} : { ownerReferences: [ownerOf(owner)] }),
    },
    spec: undefined,
    type: 'Opaque',
    data: { userData: Buffer.from(text).toString('base64') },
  }
  await store.create(Secret, draft).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}

/** From now on the Secret is deleted with its server. The controller does the same if this call was missed. */
async function giveToServer(
  { store, log }: Parts,
  secret: { readonly namespace: string; readonly name: string },
  server: KubeObject<ServerSpec, ServerStatus>,
): Promise<void> {
  const { metadata } = server
  await store
    .patch(Secret, secret, { metadata: { ownerReferences: [ownerOf(server)] } })
    .catch((error: unknown) => log.info('user data left without an owner', { server_id: metadata.name, error }))
}

const ownerOf = ({ apiVersion, kind, metadata }: KubeObject) => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
})
