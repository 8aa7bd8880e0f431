/** How each noun of customers is made, refused, changed and deleted on its pages. */
import { expect } from 'vitest'
import { PUBLIC_KEY } from '../../../e2e/customer.ts'
import { until } from '../../../eventually.ts'
import type { nouns } from '../../../../portal/texts/en-nouns.ts'
import type { Answered } from './answered.ts'
import type { Hands } from './hands.ts'
import { pool } from './managed.ts'
import type { Person } from './person.ts'
import { serverOf } from './server.ts'
import type { StaffMember } from './staff.ts'

export interface Life {
  /** Its list. */
  readonly path: string
  /** As the page of its creation is named. */
  readonly one: string
  /** What it needs, made beside the browser. */
  readonly before?: (person: Person) => Promise<unknown>
  /** The field with its name. Without one, its name is what its page says. */
  readonly named?: 'Name' | 'Title'
  /** Fills in the other fields that are needed. */
  readonly fill?: (hands: Hands) => Promise<void>
  /** Brings a refusal about, in the form that makes it or on the page where it is made; by default with a name that
   *  nothing may have. */
  readonly refuse?: (hands: Hands) => Promise<void>
  /** It is made on the page of another noun: goes there, and opens the dialog. */
  readonly from?: (hands: Hands) => Promise<void>
  /** The button that makes it; by default that of its form. */
  readonly button?: string
  /** Its secret is shown once. */
  readonly hasSecret?: boolean
  /** Changes it, and answers its new name; by default its name is another. */
  readonly change?: (hands: Hands, name: string, person: Person) => Promise<string>
  /** The entry of its menu that deletes it. */
  readonly ends?: string
  /** What has to be typed for that, by the names it was made with and has now. */
  readonly typed?: (name: string, now: string) => string
  /** The product only refuses it: what follows is answered for it. */
  readonly answered?: Answered
  /** Errors in the console that its refusals are. */
  readonly allows?: readonly RegExp[]
}

/** Other files fill the first zone. */
const ZONE = 'eu-1b'
/** A name that nothing may have: it would turn the text beside it around. */
export const HOSTILE = '\u202egnp.exe'

const inZone = ({ take }: Hands) => take(/^EU-1B/)
const present = (_name: string, now: string): string => now

/** Makes something to its end beside the browser. */
async function make({ customer }: Person, nouns: string, fields: object): Promise<void> {
  const { status, body } = await customer.request<Started>('POST', `/v1/${nouns}`, fields)
  if (status !== 202) throw new Error(`${nouns}: ${status} ${JSON.stringify(body)}`)
  await customer.finished(body.operation.id)
}
interface Started {
  readonly operation: { readonly id: string }
}

/** What other nouns are in. */
const NETWORK = 'inner'
const SERVER = 'web-1'
const aNetwork = (person: Person) => make(person, 'networks', { zone: ZONE, name: NETWORK })

/** Gives the zone addresses for floating IPs. */
export async function addAddresses({ request }: StaffMember): Promise<void> {
  const path = '/v1/operator/public-pools'
  await request('POST', path, 202, { zone: ZONE, family: 'ipv4', cidr: '198.51.100.0/28', use: 'floating_ipv4' })
  await until(
    'the addresses can be used',
    () => request<{ readonly items: readonly { readonly active_operation: unknown }[] }>('GET', path, 200),
    ({ items }) => items.every(({ active_operation: operation }) => operation === null),
  )
}

const aStorage = (person: Person) => make(person, 'storages', { zone: ZONE, title: 'origin', size_gibibytes: 1 })

/** Opens the settings of an item, changes a field of them, and answers its value. */
async function edit({ open, press, dialog, fill, answer }: Hands, field: string, value: string): Promise<string> {
  await open('Settings')
  await press('Edit')
  await dialog('Edit')
  await fill(field, value)
  await answer('Save')
  return value
}
export const rename = (hands: Hands, named: string, name: string): Promise<string> => edit(hands, named, `${name}-2`)

/** Nothing of it can be changed. */
const unchanged = async (_hands: Hands, name: string): Promise<string> => name

interface Refusal {
  readonly field: 'Name' | 'Title'
  readonly button: string
  readonly reason: string
}

/** With a name that it may have, it is refused for something else. */
async function refused(hands: Hands, { field, button, reason }: Refusal): Promise<void> {
  await hands.fill(field, 'refused')
  await hands.press(button)
  await answeredWith(hands, reason)
}
/** The answer to what was sent: a dry run says the same before, and no alert. */
const answeredWith = ({ page }: Hands, reason: string): Promise<void> =>
  page.getByRole('alert').filter({ hasText: reason }).first().waitFor()

const WINDOW = {
  earliest_recoverable_at: '2026-06-01T12:00:00Z',
  latest_recoverable_at: '2026-07-01T12:00:00Z',
  gaps: [],
}

/** A noun without a row does not compile. */
export const LIVES: Readonly<Record<keyof typeof nouns, Life>> = {
  server: {
    path: '/servers',
    one: 'server',
    named: 'Name',
    before: ({ customer }) => customer.addSshKey(),
    fill: inZone,
    change: (hands, name) => edit(hands, 'Title', `${name} with a title`),
    typed: (name) => name,
  },
  ssh_key: {
    path: '/ssh-keys',
    one: 'SSH key',
    named: 'Name',
    fill: ({ fill }) => fill('Public key', PUBLIC_KEY),
  },
  init_script: {
    path: '/init-scripts',
    one: 'init script',
    named: 'Name',
    fill: ({ fill }) => fill('Content', '#!/bin/sh'),
  },
  server_group: { path: '/server-groups', one: 'server group', named: 'Name' },
  storage: { path: '/storages', one: 'storage', named: 'Title', typed: present },
  snapshot: {
    path: '/snapshots',
    one: 'snapshot',
    named: 'Title',
    before: aStorage,
    async from({ page, press, dialog }) {
      await page.goto('/storages')
      await press('origin', 'link')
      await press('Take snapshot')
      await dialog('Take snapshot origin?')
    },
    button: 'Take snapshot',
    typed: present,
  },
  backup: {
    path: '/backups',
    one: 'backup',
    named: 'Title',
    before: aStorage,
    async from({ page, press, menu, dialog }) {
      await page.goto('/storages')
      await press('origin', 'link')
      await menu('Back up now')
      await dialog('Back up now origin?')
    },
    button: 'Back up now',
    refuse: (hands) => refused(hands, { field: 'Title', button: 'Back up now', reason: 'has no place for backups' }),
    async change({ page, press, dialog, fill, toggle, answer }, name) {
      await press('Restore')
      await dialog(`Restore ${name}?`)
      await fill(`Type ${name} to confirm`, name)
      await toggle('By force')
      const sent = page.waitForRequest(/\/restore$/)
      await answer('Restore')
      expect((await sent).postDataJSON()).toEqual({ force: true })
      return name
    },
    typed: present,
    answered: {
      member: 'backup',
      path: '/v1/backups',
      madeAt: /^\/v1\/storages\/[^/]+\/backups$/,
      facts: { state: 'online' },
    },
    // the storage of the example is nobody's
    allows: [/status of 409 .*\/backups/, /status of 404 .*\/storages\/[^/]+$/],
  },
  custom_image: {
    path: '/images',
    one: 'image',
    named: 'Title',
    before: aStorage,
    async fill(hands) {
      await inZone(hands)
      await hands.choose('From a storage', 'origin')
    },
    typed: present,
  },
  network: { path: '/networks', one: 'network', named: 'Name', typed: present },
  router: {
    path: '/routers',
    one: 'router',
    named: 'Name',
    fill: inZone,
    typed: present,
  },
  floating_ip: {
    path: '/floating-ips',
    one: 'floating IP',
    before: serverOf,
    async refuse(hands) {
      // it has no public addresses
      await hands.take(/^EU-1C/)
      await hands.press('Create floating IP')
      await answeredWith(hands, 'Zone eu-1c has no free public IPv4 address now.')
      await inZone(hands)
    },
    // servers of these zones have no public IPv4, and so no floating IP
    async change({ press, dialog, choose, answer, sees }, name) {
      await press('Assign')
      await dialog(`Assign ${name}?`)
      await press('Assign')
      await sees('Is needed')
      await choose('Server', SERVER)
      await press('Assign')
      await sees('the server has no public IPv4 address')
      await answer('Cancel')
      return name
    },
    ends: 'Release',
    typed: present,
    allows: [/status of 503 .*\/floating-ips/, /status of 400 .*\/assign/],
  },
  load_balancer: {
    path: '/load-balancers',
    one: 'load balancer',
    named: 'Name',
    before: aNetwork,
    async fill(hands) {
      await inZone(hands)
      await hands.choose('Network', NETWORK)
      await hands.toggle('Public IPv4')
    },
    async change(hands, name) {
      const { page, open, press, dialog, fill, answer, sees } = hands
      const rows = (table: string) => page.getByRole('table', { name: table }).getByRole('row')
      await open('Traffic')
      await press('Add a backend')
      await dialog('Add a backend')
      await fill('Name', 'shop')
      await answer('Save')
      await press('Add a member')
      await dialog('Add a member to shop')
      await fill('Name', 'first')
      await fill('Address', '10.0.0.77')
      await fill('Port', '80a')
      await press('Add a member')
      await sees('A whole number')
      await fill('Port', '8080')
      await answer('Add a member')
      await rows('Members of shop').filter({ hasText: '10.0.0.77 : 8080' }).waitFor()
      await press('Add a frontend')
      await dialog('Add a frontend')
      await fill('Name', 'web')
      await fill('Port', '80')
      await answer('Save')
      await rows('Frontends').filter({ hasText: 'web' }).waitFor()
      await press(/^Remove/)
      await dialog('Remove web?')
      await answer('Remove')
      await rows('Frontends').filter({ hasText: 'web' }).waitFor({ state: 'detached' })
      return await rename(hands, 'Name', name)
    },
    typed: present,
  },
  edge: {
    path: '/edges',
    one: 'edge',
    async before(person) {
      await person.customer.addSshKey()
      await aNetwork(person)
    },
    async fill({ press, sees, choose, toggle }) {
      await press('Create edge')
      await sees('Is needed')
      await choose('Network', NETWORK)
      await toggle('bastion')
    },
    async refuse(hands) {
      await hands.press('Create edge')
      await answeredWith(hands, 'no free public IPv4 address')
    },
    typed: present,
    answered: { member: 'edge', path: '/v1/edges', facts: { state: 'running' } },
    allows: [/status of 503 .*\/edges/],
  },
  database: {
    path: '/databases',
    one: 'database',
    named: 'Name',
    before: aNetwork,
    async fill(hands) {
      await inZone(hands)
      await hands.choose('Network', NETWORK)
      await hands.choose('Plan', 'db-1c-2g')
      await hands.fill('Database', 'app')
    },
    refuse: (hands) =>
      refused(hands, { field: 'Name', button: 'Create database', reason: 'zone eu-1b has no databases' }),
    async change(hands, name) {
      const { page, open, press, dialog, fill, answer } = hands
      await open('Recovery')
      await press('Restore to a time')
      await dialog(`Restore to a time ${name}?`)
      await fill('Name', 'again')
      const sent = page.waitForRequest(/\/restore$/)
      await answer('Restore to a time')
      expect((await sent).postDataJSON()).toEqual({ name: 'again' })
      return await rename(hands, 'Name', name)
    },
    typed: present,
    answered: {
      member: 'database',
      path: '/v1/databases',
      facts: { state: 'running' },
      others: { '/backups': { window: WINDOW } },
    },
    allows: [/status of 409 .*\/databases/],
  },
  dev_cluster: {
    path: '/dev-clusters',
    one: 'dev cluster',
    named: 'Name',
    before: ({ customer }) => customer.addSshKey(),
    async fill(hands) {
      await inZone(hands)
      await hands.take(/^starter-2c-4g/)
    },
    refuse: (hands) =>
      refused(hands, { field: 'Name', button: 'Create dev cluster', reason: 'zone eu-1b has no dev clusters' }),
    change: unchanged,
    typed: present,
    answered: { member: 'dev_cluster', path: '/v1/dev-clusters', facts: { state: 'running' } },
    // the server of the example is nobody's
    allows: [/status of 409 .*\/dev-clusters/, /status of 404 .*\/servers\/[^/]+$/],
  },
  playground: {
    path: '/playgrounds',
    one: 'playground',
    async refuse(hands) {
      await hands.press('Create playground')
      await answeredWith(hands, 'No playgrounds are offered')
    },
    change: unchanged,
    ends: 'End',
    answered: {
      member: 'playground',
      path: '/v1/playgrounds',
      // the document names no null among the reasons
      facts: { state: 'ready', end_reason: 'deleted' },
      others: { '/v1/playgrounds/offer': { is_available: true, regions: ['eu-1'] } },
    },
    allows: [/status of 503 .*\/playgrounds/],
  },
  // the product makes it within half a minute, but no pool, whose nodes would have to reach its control plane
  kubernetes_cluster: {
    path: '/kubernetes',
    one: 'Kubernetes cluster',
    named: 'Name',
    before: aNetwork,
    async fill(hands) {
      await inZone(hands)
      await hands.choose('Network', NETWORK)
    },
    async change(hands, name) {
      const { page, open, press, dialog, fill, take, answer, sees } = hands
      const sent = (method: string) =>
        page.waitForRequest((request) => request.method() === method && !request.url().includes('dry_run'))
      await open('Node pools')
      await press('Add node pool')
      await dialog('Add node pool')
      await fill('Name', HOSTILE)
      await press('Add node pool')
      await sees('Lower-case letters, digits and dashes')
      await fill('Name', 'workers')
      await take(/^starter-2c-4g/)
      const made = sent('POST')
      await answer('Add node pool')
      expect((await made).postDataJSON()).toEqual({ name: 'workers', plan: 'starter-2c-4g', count: 1 })
      await press('Set count')
      await dialog(`Set count ${pool.name}?`)
      await fill('Nodes', '5')
      const scaled = sent('PATCH')
      await answer('Set count')
      expect((await scaled).postDataJSON()).toEqual({ count: 5 })
      await press('Delete')
      await dialog(`Delete ${pool.name}?`)
      await fill(`Type ${pool.name} to confirm`, pool.name)
      const removed = sent('DELETE')
      await answer('Delete')
      expect(new URL((await removed).url()).pathname).toMatch(/\/node-pools\/[^/]+$/)
      await open('Snapshots')
      await press('Restore')
      await dialog(`Restore ${name}?`)
      await fill(`Type ${name} to confirm`, name)
      const restored = sent('POST')
      await answer('Restore')
      expect(Object.keys((await restored).postDataJSON() as object)).toEqual(['snapshot_id'])
      await edit(hands, 'Snapshot schedule', '0 3 * * *')
      return name
    },
    typed: present,
    answered: {
      member: 'kubernetes_cluster',
      path: '/v1/kubernetes-clusters',
      facts: { state: 'running', node_pools: [pool] },
      isOffered: true,
    },
  },
  webhook: {
    path: '/webhooks',
    one: 'webhook',
    named: 'Name',
    fill: ({ fill }) => fill('Address', 'https://hooks.example.com/in'),
    hasSecret: true,
    async change(hands, name) {
      const { page, press, open, menu, dialog, sees, answer } = hands
      await press('Send a test event')
      await open('Deliveries')
      await page
        .getByRole('row', { name: /webhook\./ })
        .first()
        .waitFor()
      const now = await rename(hands, 'Name', name)
      await page.getByRole('heading', { level: 1, name: now }).waitFor()
      await menu('Rotate secret')
      await dialog(`Rotate secret ${now}?`)
      await answer('Rotate secret')
      await sees(/^whsec_/)
      await answer('I have kept them')
      return now
    },
  },
  audit_sink: {
    path: '/audit-sinks',
    one: 'audit sink',
    named: 'Name',
    fill: ({ fill }) => fill('Address', 'https://logs.example.com/in'),
    hasSecret: true,
    async change({ open, press, dialog, toggle, answer, sees }, name) {
      await open('Settings')
      await press('Edit')
      await dialog('Edit')
      await toggle('Enabled')
      await answer('Save')
      await sees('disabled')
      return name
    },
    typed: present,
  },
}
