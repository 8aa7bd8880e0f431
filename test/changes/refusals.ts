/** Tables of what customers ask of a noun, by REST and by kubectl. Each row is asked through the real interfaces: the
 *  REST application, and the Kubernetes API with its schemas and the webhook (as a dry run). The answers are in
 *  `test/golden/refusals/`. */
import type { Transaction } from 'kysely'
import { expect } from 'vitest'
import { openAdmission } from '../../apiserver/kit/admission/admit.ts'
import { registerWebhook } from '../../apiserver/kit/admission/registration.ts'
import { AdmissionReview } from '../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import { MANAGED_TEMPLATES } from '../../domain/managed-machine/rules.ts'
import { snakeCase } from '../../resources/kit/view.ts'
import { attachInterface } from '../../db/network-interface/index.ts'
import { mirrorPool } from '../../db/public-pool/index.ts'
import type { Database } from '../../db/kit/open.ts'
import type { Tables } from '../../db/tables.ts'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { Key, KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { defined } from '../../domain/defined.ts'
import type { OperationKind } from '../../domain/operations.ts'
import { makeNamespace } from '../../kit/kube/namespaces.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { silentLog as log } from '../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../kit/sys/random.ts'
import { accountNamespace, accountNamespaceOf, RESOURCES } from '../../resources/index.ts'
import { finalizerOf } from '../../resources/kit/define.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/kit/labels.ts'
import type { OperationStanza } from '../../resources/kit/shapes.ts'
import type { Operable } from '../../resources/operation/index.ts'
import { Plan, Zone, type ZoneStatus } from '../../resources/catalog/index.ts'
import { askTwice } from '../apiserver/ask-twice.ts'
import { type Cloud, openCloud, PUBLIC_KEY, type Reply } from '../apiserver/cloud.ts'
import { progressOf } from '../progress.ts'

/** What the account of a row lacks: a confirmed address, credit, or room in its quotas. */
type Lack = 'address' | 'credit' | 'quota'

type Fields = Readonly<Record<string, unknown>>
interface Request {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** After `/v1`. `:back` is the id of what the test calls `back`. */
  readonly path: string
  readonly body?: object | undefined
}
type Edit =
  | { readonly verb: 'create'; readonly name: string; readonly spec: Fields; readonly metadata?: object }
  | { readonly verb: 'update'; readonly name: string; readonly patch: object }
  | { readonly verb: 'delete'; readonly name: string }

/** Makes something in the scene. Answers its id. */
export type Given = (scene: Scene) => Promise<string>

/** One request, as both interfaces have it. */
export interface Row {
  readonly what: string
  /** Makes what the request is about, which it names `it`. Answers its id. */
  readonly given?: Given | undefined
  readonly lacks?: Lack | undefined
  /** The only quota without room, where not all of them are. */
  readonly quota?: string | undefined
  /** Why the answers of the interfaces differ in status or reason; undefined when they agree. */
  readonly differs?: string | undefined
  readonly rest?: Request | undefined
  readonly kubectl?: Edit | undefined
}

export interface Table {
  readonly resource: ResourceType
  /** Makes what is there when the rows are asked. */
  readonly arrange: (scene: Scene) => Promise<void>
  readonly rows: readonly Row[]
}

/** The rows, and why the answers to each of them differ. */
export const differing = (differs: string, ...rows: readonly Row[]): readonly Row[] =>
  rows.map((row) => ({ ...row, differs }))

/** Why answers differ in rows of several nouns. */
export const WHY = {
  pending: 'kubectl may name an object before it exists or is ready: the operation waits for it',
  deletionWaits: 'a deletion by kubectl waits for the current operation of its object (decision 133)',
  deletedAgain: 'a deletion by kubectl may be repeated: Kubernetes has marked the object already (decision 133)',
  hiddenMachine: 'REST hides machines of the platform with their storages; kubectl shows them',
  unchanged: 'the spec is as it was: for kubectl there is nothing to change',
  noField: 'the body of REST does not have the field',
} as const

/** How the two interfaces differ in a row; undefined leaves a field out. */
interface Differences {
  /** False: there is no such request. Fields replace those of the spec in the body. */
  readonly rest?: Fields | false
  readonly kubectl?: Fields | false
  readonly given?: Row['given']
  readonly lacks?: Lack
  readonly quota?: string
  readonly differs?: Row['differs']
  /** Of a new object by kubectl. */
  readonly metadata?: object
}

/** In REST's spelling. What is undefined is left out by JSON. */
const snake = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(snake)
    : value !== null && typeof value === 'object'
      ? Object.fromEntries(
          Object.entries(value).map(([key, each]) => [snakeCase(key), key === 'labels' ? each : snake(each)]),
        )
      : value
const snakeFields = (fields: Fields): Fields => snake(fields) as Fields

/** What is undefined is taken out by a patch. */
const withNulls = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, value ?? null]))

/** The rows of a noun whose routes begin with the path. `well` is a spec that is accepted, `more` the rest of it in one
 *  interface. Bodies have the fields of specs in REST's spelling, unless a row says otherwise. */
export function asking(path: string, well: Fields, more: { readonly rest?: Fields; readonly kubectl?: Fields } = {}) {
  let count = 0
  const create = (
    what: string,
    spec: Fields = {},
    { rest = {}, kubectl = {}, metadata, ...row }: Differences = {},
  ): Row => {
    // Each has a name that no other one has, unless the row is about its name.
    const name = 'name' in well ? { name: `${String(well['name'])}-${(count += 1)}` } : {}
    const asked = { ...well, ...name, ...spec }
    return {
      ...row,
      what: `create ${what}`.trim(),
      rest:
        rest === false ? undefined : { method: 'POST', path, body: { ...snakeFields(asked), ...more.rest, ...rest } },
      kubectl:
        kubectl === false
          ? undefined
          : { verb: 'create', name: 'new', spec: { ...asked, ...more.kubectl, ...kubectl }, ...defined({ metadata }) },
    }
  }
  /** Asks for a change of the object, which is `it` where the row makes it. The body of a verb is `rest`. */
  const change = (
    what: string,
    of: string,
    spec: Fields,
    {
      method = 'PATCH',
      suffix = '',
      rest = {},
      kubectl = {},
      ...row
    }: Differences & Partial<Pick<Request, 'method'>> & { readonly suffix?: string } = {},
  ): Row => {
    const body = suffix === '' ? withNulls({ ...snakeFields(spec), ...rest }) : rest
    return {
      ...row,
      what,
      rest:
        rest === false
          ? undefined
          : { method, path: `${path}/:${of}${suffix}`, body: method === 'DELETE' ? undefined : (body as Fields) },
      kubectl:
        kubectl === false
          ? undefined
          : { verb: 'update', name: `:${of}`, patch: { spec: withNulls({ ...spec, ...kubectl }) } },
    }
  }
  /** By kubectl only. */
  const edit = (what: string, of: string, patch: object): Row => ({
    what,
    kubectl: { verb: 'update', name: `:${of}`, patch },
  })
  return {
    create,
    change,
    remove: (what: string, of: string, { rest, kubectl, ...row }: Differences = {}): Row => ({
      ...row,
      what: `delete ${what}`.trim(),
      rest: rest === false ? undefined : { method: 'DELETE', path: `${path}/:${of}` },
      kubectl: kubectl === false ? undefined : { verb: 'delete', name: `:${of}` },
    }),
    edit,
    /** By REST only. */
    request: (what: string, method: Request['method'], suffix: string, body?: object): Row => ({
      what,
      rest: { method, path: `${path}${suffix}`, body },
    }),
    /** What people write neither into a new object nor into this one. An operation where the noun has them. */
    ofPlatform: (of: string, kind?: OperationKind): readonly Row[] => {
      const operation = kind === undefined ? undefined : stanza(kind)
      const note = { annotations: { [LAST_CHANGE_ANNOTATION]: 'x' } }
      return [
        create('with a note of the platform', {}, { rest: false, metadata: note }),
        edit('change the note of the platform', of, { metadata: note }),
        edit('take away the finalizer', of, { metadata: { finalizers: null } }),
        ...(operation === undefined
          ? []
          : [
              create('with an operation', { operation }, { rest: false }),
              edit('change the operation', of, { spec: { operation } }),
            ]),
      ]
    },
    /** What every creation needs of the account. */
    creationNeeds: (...lacks: readonly Lack[]): readonly Row[] =>
      lacks.map((lacked) => create(`without ${LACKED[lacked]}`, {}, { lacks: lacked })),
  }
}
/** An operation under way. */
export const stanza = (kind: OperationKind) => ({
  id: newUuid(random),
  kind,
  requestedAt: '2026-01-01T00:00:00Z',
  deadlineAt: '2099-01-01T00:00:00Z',
  actor: 'user:1',
  requestId: 'r1',
})
const LACKED: Readonly<Record<Lack, string>> = {
  address: 'a confirmed address',
  credit: 'credit',
  quota: 'room in the quota',
}

const QUOTA = 1_000_000

/** Beside the zone of the cloud: one without networks and backups, one that is closed, one without images for machines,
 *  one whose hosts reach the backups of the first zone too, and one in another region. Only the first has hosts. */
const ZONES: Readonly<Record<string, Partial<ZoneStatus>>> = {
  bare: { hasBackups: false },
  closed: { hasPrivateNetworks: true },
  imageless: { hasPrivateNetworks: true },
  copies: { hasBackups: true, backupSources: ['eu-1-a'] },
  far: { hasBackups: true },
}

/** A plan with little memory, and one that no host has room for. */
const PLANS: readonly (readonly [name: string, cores: number, memoryMebibytes: number])[] = [
  ['small', 1, 1_024],
  ['huge', 512, 4_096],
]

/** The interfaces, without controllers: what they would say, a scene says. */
export async function openStage(db: Database) {
  let admitted: readonly string[] = []
  let cloud: Cloud | undefined
  let admit: ReturnType<typeof openAdmission> | undefined
  const admission = (opened: Cloud) =>
    openAdmission({
      caches: opened.caches,
      db,
      clock,
      random,
      log,
      platformUsers: [ADMIN.name],
      // What is admitted is recorded under these names.
      kinds: KINDS.map((kind) => ({
        ...kind,
        async admit(...asked) {
          const changes = await kind.admit(...asked)
          admitted = changes.map(({ action }) => action)
          return changes
        },
      })),
    })
  const core = await openCore({
    clock,
    random,
    log,
    storage: memoryStorage(),
    async callWebhook({ body }) {
      if (admit === undefined) throw new Error('the webhook is not open yet')
      const { request } = AdmissionReview.parse(JSON.parse(body))
      return JSON.stringify(await admit(request, { isAuthenticated: true }))
    },
  })
  const open = async (): Promise<Cloud> => {
    const opened = await openCloud(db, { core })
    admit = admission(opened)
    await opened.caches.ready()
    const url = 'https://127.0.0.1:1/admission'
    await registerWebhook(opened.admin, 'svccloud', { url, authority: '', platformUsers: [ADMIN.name], kinds: KINDS })
    await db.updateTable('node_capacity').set({ has_backups: true }).where('node', '=', opened.node).execute()
    for (const [name, status] of Object.entries(ZONES)) {
      const region = name === 'far' ? 'eu-2' : 'eu-1'
      const spec = { displayName: name, region, isClosed: name === 'closed', capabilities: [] }
      await opened.admin.create(Zone, { metadata: { name }, spec })
      opened.caches.of(Zone).apply(await opened.admin.patch(Zone, { name }, { status }, 'status'))
    }
    const images = { status: { builtTemplates: [...MANAGED_TEMPLATES], hasBackups: true } }
    opened.caches.of(Zone).apply(await opened.admin.patch(Zone, { name: opened.zone }, images, 'status'))
    for (const [name, cores, memoryMebibytes] of PLANS) {
      const spec = { family: 'starter', cores, memoryMebibytes, storageGibibytes: 20, priceMonthlyCents: 500 } as const
      opened.caches.of(Plan).apply(await opened.admin.create(Plan, { metadata: { name }, spec }))
    }
    const pool = { family: 'ipv4', zone: opened.zone, state: 'active' } as const
    await db.transaction().execute(async (tx) => {
      await mirrorPool(tx, { ...pool, id: 'floating', use: 'floating_ipv4', cidr: '198.51.100.0/24' })
      await mirrorPool(tx, { ...pool, id: 'servers', use: 'server_ipv4', cidr: '203.0.113.0/24' })
      const prefixes = { id: 'prefixes', family: 'ipv6', use: 'server_ipv6_prefix', cidr: '2001:db8:de::/48' } as const
      await mirrorPool(tx, { ...pool, ...prefixes })
    })
    return opened
  }
  /** What kubectl is answered, when it tries. */
  async function ask(resource: ResourceType, namespace: string, edit: Edit): Promise<string> {
    const { group, version, plural, kind, scope } = resource
    const all = `/apis/${group}/${version}${scope === 'Cluster' ? '' : `/namespaces/${namespace}`}/${plural}`
    const named = `${all}/${edit.name.replace(/^:/, '')}`
    const object = { apiVersion: `${group}/${version}`, kind }
    const { method, path, type, body } =
      edit.verb === 'create'
        ? {
            method: 'POST' as const,
            path: all,
            type: 'application/json',
            body: { ...object, metadata: { name: edit.name, ...edit.metadata }, spec: edit.spec },
          }
        : edit.verb === 'update'
          ? { method: 'PATCH' as const, path: named, type: 'application/merge-patch+json', body: edit.patch }
          : { method: 'DELETE' as const, path: named, type: 'application/json', body: {} }
    admitted = []
    const sent = JSON.stringify(body)
    const user = { name: 'grace@example.com', groups: ['system:masters'] }
    const answer = await core.handle(
      { method, path: `${path}?dryRun=All`, headers: { 'content-type': type }, body: sent },
      user,
    )
    if (answer.status < 300) return admitted.length === 0 ? 'admitted' : `admitted as ${admitted.join(', ')}`
    const { message = '' } = JSON.parse(await answer.text()) as { readonly message?: string }
    return `${answer.status} ${message.replace('admission webhook "admission.svccloud.dev" denied the request: ', '')}`
  }
  cloud = await open()
  const lacking = {
    address: await cloud.signUp('address@example.com', { isVerified: false }),
    credit: await cloud.signUp('credit@example.com'),
  }
  await revokeCredit(cloud, lacking.credit.accountId, clock.now())
  for (const each of Object.values(lacking)) await makeNamespace(cloud.admin, accountNamespaceOf(each.accountId))
  return {
    cloud,
    /** People whose accounts lack it. They have no objects. */
    lacking,
    ask,
    async close() {
      await cloud?.close()
      await core.close()
    },
  }
}
type Stage = Awaited<ReturnType<typeof openStage>>

/** The account of a table, with what it has. */
export async function openScene({ cloud }: Pick<Stage, 'cloud'>, noun: string) {
  const { db, admin, caches } = cloud
  const person = await cloud.signUp(`${noun}@example.com`)
  const namespace = accountNamespace(person.accountId)
  await makeNamespace(admin, accountNamespaceOf(person.accountId))
  const ids: Record<string, string> = {}
  /** The path or the value, with ids instead of names of the test. */
  const named = (text: string): string => text.replaceAll(/:(\w[\w-]*)/g, (whole, name: string) => ids[name] ?? whole)
  const inIds = <T>(value: T): T =>
    JSON.parse(JSON.stringify(value), (_key, each: unknown) => (typeof each === 'string' ? named(each) : each)) as T
  const keyOf = ({ scope }: Pick<ResourceType, 'scope'>, name: string): Key =>
    scope === 'Cluster' ? { name } : { namespace, name }

  async function refresh<Spec, Status>(
    type: ResourceType<Spec, Status>,
    name: string,
  ): Promise<KubeObject<Spec, Status>> {
    const object = await admin.get(type, keyOf(type, name))
    if (object === undefined) throw new Error(`there is no ${type.kind} ${name}`)
    caches.of(type).apply(object)
    return object
  }
  /** Puts an object there as the platform would. Answers its name. */
  async function put<Spec, Status>(
    type: ResourceType<Spec, Status>,
    name: string,
    spec: NoInfer<Spec> | Fields,
    status?: NoInfer<Partial<NonNullable<Status>>> | Fields,
    { isDeleting = false } = {},
  ): Promise<string> {
    const metadata = { ...keyOf(type, name), finalizers: [finalizerOf(type)] }
    await admin.create(type, { metadata, spec: inIds(spec) as Spec })
    if (status !== undefined) await admin.patch(type, keyOf(type, name), { status }, 'status')
    if (isDeleting) await admin.delete(type, keyOf(type, name))
    await refresh(type, name)
    ids[name] = name
    return name
  }
  /** What a controller writes when it has brought about the operation of the object. */
  async function finish(type: ResourceType, id: string, status: object = {}): Promise<void> {
    // it was made by an operation
    const operable = type as unknown as ResourceType<Operable['spec'], Operable['status']>
    const { operation } = (await refresh(operable, id)).spec
    const progress = operation === undefined ? {} : { operation: progressOf(operation as OperationStanza) }
    await admin.patch(operable, keyOf(type, id), { status: { ...progress, ...status } }, 'status')
    await refresh(operable, id)
  }
  /** Asks REST for an object, and finishes its operation unless it is left under way. Names and answers its id. */
  async function make(
    name: string,
    path: string,
    body: object,
    { status = {}, isBusy = false }: { readonly status?: object; readonly isBusy?: boolean } = {},
  ): Promise<string> {
    const reply = await person.send('POST', `/v1${path}`, { body: inIds(body) })
    if (reply.status >= 300) throw new Error(`${path} was refused: ${reply.text}`)
    const [member = '', made] = Object.entries(reply.body).find(([word]) => word !== 'operation') ?? []
    const { id } = made as { readonly id: string }
    ids[name] = id
    const kind = member.replaceAll('_', '')
    const type = RESOURCES.find((one) => one.kind.toLowerCase() === kind)
    if (type === undefined) throw new Error(`${member} has no kind`)
    await refresh(type, id)
    if (!isBusy) await finish(type, id, status)
    return id
  }
  /** Asks REST for something that must succeed. */
  async function request(method: string, path: string, body?: object): Promise<Reply> {
    const reply = await person.send(method, named(`/v1${path}`), body === undefined ? {} : { body: inIds(body) })
    if (reply.status >= 300) throw new Error(`${path} was refused: ${reply.text}`)
    return reply
  }
  /** Edits the object as the platform would. */
  async function patch(type: ResourceType, name: string, change: object, subresource?: 'status'): Promise<void> {
    await admin.patch(type, keyOf(type, ids[name] ?? name), inIds(change), subresource)
    await refresh(type, ids[name] ?? name)
  }
  const claim = <T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> => db.transaction().execute(work)
  await limitQuotas(cloud, person.accountId, QUOTA)
  return {
    cloud,
    person,
    accountId: person.accountId,
    namespace,
    zone: cloud.zone,
    ids,
    named,
    inIds,
    put,
    make,
    finish,
    request,
    patch,
    claim,
    /** The words of the test instead of ids. */
    plain: (text: string): string =>
      Object.entries(ids)
        .reduce((known, [name, id]) => (id === name ? known : known.replaceAll(id, `:${name}`)), text)
        .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
        // How many are used is a matter of the rows above.
        .replaceAll(/\d+ are used/g, '<n> are used'),
  }
}
export type Scene = Awaited<ReturnType<typeof openScene>>

/** Makes a network that its controller has finished, with these ranges. */
export async function makeNetwork(name: string, ipv4Cidr: string, { make, zone }: Scene): Promise<void> {
  const status = { ipv4Cidr, ipv6Prefix: 'fd00:1::/64' }
  await make(name, '/networks', { zone, name, ipv4_cidr: ipv4Cidr }, { status })
}

/** Makes a server, in the network where one is given. */
export async function makeGuest(
  name: string,
  network: string | undefined,
  scene: Scene,
  more: object = {},
): Promise<void> {
  const { make, claim, accountId, zone, ids, named } = scene
  const body = {
    zone,
    hostname: name,
    plan: 'tiny',
    template: 'tiny-linux',
    ssh_keys: [PUBLIC_KEY],
    public_ipv4: false,
  }
  await make(name, '/servers', { ...body, ...more }, { status: { state: 'started' } })
  if (network === undefined) return
  const networkId = named(network)
  const joined = { accountId, serverId: ids[name] ?? '', networkId, networkUid: networkId }
  await claim((tx) => attachInterface(tx, joined, { now: clock.now(), random }))
}

const limitQuotas = ({ db }: Pick<Cloud, 'db'>, accountId: string, limit: number, name?: string) =>
  db
    .updateTable('account_quota')
    .set({ limit })
    .where('account_id', '=', accountId)
    .$if(name !== undefined, (query) => query.where('name', '=', name ?? ''))
    .execute()

/** Null gives it back. */
const revokeCredit = ({ db }: Pick<Cloud, 'db'>, accountId: string, revoked_at: Date | null) =>
  db.updateTable('credit').set({ revoked_at }).where('account_id', '=', accountId).execute()

const restOf = ({ status, body }: Reply): string => {
  if (status < 300) return String(status)
  const {
    reason,
    detail,
    errors = [],
  } = body as {
    readonly reason?: string
    readonly detail: string
    readonly errors?: readonly { readonly field: string; readonly detail: string }[]
  }
  const fields = errors
    .filter(({ field, detail: why }) => detail !== `${field}: ${why}` && detail !== `${field} ${why}.`)
    .map(({ field, detail: why }) => ` [${field}: ${why}]`)
  return `${status} ${reason === undefined ? '' : `${reason}: `}${detail}${fields.join('')}`
}

/** What a refusal leaves as it is. */
const held = async ({ cloud: { db }, person: { accountId } }: Scene): Promise<string> =>
  JSON.stringify([
    await db
      .selectFrom('account_quota')
      .select(['name', 'used'])
      .where('account_id', '=', accountId)
      .orderBy('name')
      .execute(),
    await db.selectFrom('change_intent').select('operation_id').where('account_id', '=', accountId).execute(),
    await db
      .selectFrom('placement')
      .select('server_id')
      .where('account_id', '=', accountId)
      .orderBy('server_id')
      .execute(),
  ])

/** A row with what the interfaces answered; undefined where it was not asked. */
export interface Answered {
  readonly row: Row
  readonly kubectl: string | undefined
  readonly rest: string | undefined
}

/** Asks every row of the table, by REST as a dry run first. Throws when a refusal, or a try, claimed something, and
 *  when a dry run is answered otherwise than its request. `isAccepted` says of a row by its words whether REST accepts
 *  it: then what is stored is compared too. */
export async function answersOf(
  stage: Stage,
  { resource, rows }: Table,
  scene: Scene,
  isAccepted: (what: string) => boolean,
): Promise<readonly Answered[]> {
  const answers: Answered[] = []
  for (const row of rows) {
    const { given, lacks, quota, rest, kubectl } = row
    if (given !== undefined) scene.ids['it'] = await given(scene)
    // Only objects of the account itself can be changed without credit, and REST knows its standing for a moment.
    const isPoor = lacks === 'credit' && kubectl?.verb !== 'create'
    if (lacks === 'quota') await limitQuotas(stage.cloud, scene.accountId, 0, quota)
    if (isPoor) await revokeCredit(stage.cloud, scene.accountId, clock.now())
    const person = lacks === undefined || lacks === 'quota' || isPoor ? scene.person : stage.lacking[lacks]
    const before = await held(scene)
    const requireNothingClaimed = async (answer: string): Promise<void> => {
      if ((await held(scene)) !== before) throw new Error(`${row.what}: ${answer}, and something was claimed`)
    }
    const answered: { kubectl?: string; rest?: string } = {}
    if (kubectl !== undefined) {
      answered.kubectl = await stage.ask(resource, accountNamespace(person.accountId), scene.inIds(kubectl))
      await requireNothingClaimed(answered.kubectl)
    }
    if (rest !== undefined) {
      const { path, body } = scene.inIds(rest)
      if (rest.method === 'POST' && isAccepted(row.what)) {
        const tried = await person.send('POST', `/v1${path}?dry_run=true`.replace('/:', '/'), defined({ body }))
        const { manifest } = tried.body
        // What a verb changes is no new object.
        if (manifest?.kind === resource.kind && path.split('/').length === 2)
          expect(
            await stage.ask(resource, manifest.metadata.namespace, {
              verb: 'create',
              name: 'tried',
              spec: manifest.spec,
            }),
            `${row.what}: ${JSON.stringify(manifest)}`,
          ).toMatch(/^admitted/)
      }
      const reply = await askTwice(
        { cloud: stage.cloud, person },
        {
          method: rest.method,
          path: `/v1${path}`.replace('/:', '/'),
          options: defined({ body }),
          isCompared: isAccepted(row.what),
        },
      )
      answered.rest = restOf(reply)
      if (reply.status >= 400) await requireNothingClaimed(answered.rest)
    }
    answers.push({
      row,
      kubectl: answered.kubectl && scene.plain(answered.kubectl),
      rest: answered.rest && scene.plain(answered.rest),
    })
    if (lacks === 'quota') await limitQuotas(stage.cloud, scene.accountId, QUOTA)
    if (isPoor) await revokeCredit(stage.cloud, scene.accountId, null)
  }
  return answers
}
