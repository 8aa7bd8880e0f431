/** How each noun of customers is made, refused, changed and deleted on its pages. */
import { PUBLIC_KEY } from '../../../e2e/customer.ts'
import type { nouns } from '../../../../portal/texts/en-nouns.ts'
import type { Hands } from './hands.ts'
import type { Person } from './person.ts'

export interface Life {
  /** Its list. */
  readonly path: string
  /** As the page of its creation is named. */
  readonly one: string
  /** What it needs, made beside the browser. */
  readonly before?: (person: Person) => Promise<void>
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
  /** Errors in the console that its refusals are. */
  readonly allows?: readonly RegExp[]
}

/** It is done in that file, for a reason. */
export interface Elsewhere {
  readonly file: string
  readonly because: string
}

/** Other files fill the first zone. */
const ZONE = 'eu-1b'

const inZone = ({ take }: Hands) => take(/^EU-1B/)
const present = (_name: string, now: string): string => now

interface Made {
  readonly id: string
}

/** Makes something to its end beside the browser; answers its id. */
async function make({ customer }: Person, noun: string, body: object): Promise<string> {
  const path = `/v1/${noun.replaceAll('_', '-')}s`
  const { status, body: answer } = await customer.request<Readonly<Record<string, Made>>>('POST', path, body)
  if (status !== 202) throw new Error(`POST ${path} answered ${status}: ${JSON.stringify(answer)}`)
  await customer.finished(answer['operation']?.id ?? '')
  return answer[noun]?.id ?? ''
}
const aStorage = (person: Person) => make(person, 'storage', { zone: ZONE, title: 'origin', size_gibibytes: 1 })

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

/** Nothing makes, changes or deletes it in a browser yet. */
const SHOWN: Elsewhere = { file: 'nouns.browser.test.ts', because: 'only its list is looked at' }

/** Or where else it is done. A noun without one of both does not compile. */
export const LIVES: Readonly<Record<keyof typeof nouns, Life | Elsewhere>> = {
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
    before: async (person) => void (await aStorage(person)),
    async from({ page, press, dialog }) {
      await page.goto('/storages')
      await press('origin', 'link')
      await press('Take snapshot')
      await dialog('Take snapshot origin?')
    },
    button: 'Take snapshot',
    typed: present,
  },
  custom_image: {
    path: '/images',
    one: 'image',
    named: 'Title',
    before: async (person) => void (await aStorage(person)),
    async fill(hands) {
      await inZone(hands)
      await hands.choose('From a storage optional', 'origin')
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
  backup: SHOWN,
  floating_ip: SHOWN,
  load_balancer: SHOWN,
  edge: SHOWN,
  database: SHOWN,
  kubernetes_cluster: SHOWN,
  dev_cluster: SHOWN,
  playground: SHOWN,
  webhook: {
    path: '/webhooks',
    one: 'webhook',
    named: 'Name',
    fill: ({ fill }) => fill('Address', 'https://hooks.example.com/in'),
    hasSecret: true,
  },
  audit_sink: {
    path: '/audit-sinks',
    one: 'audit sink',
    named: 'Name',
    fill: ({ fill }) => fill('Address', 'https://logs.example.com/in'),
    hasSecret: true,
    typed: present,
  },
}
