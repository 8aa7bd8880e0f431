/** How each noun of customers is made, changed and deleted on its pages. */
import { PUBLIC_KEY } from '../../../e2e/customer.ts'
import type { nouns } from '../../../../portal/texts/en-nouns.ts'
import type { Hands } from './hands.ts'
import type { Person } from './person.ts'

export interface Life {
  /** Its list. */
  readonly path: string
  /** Made beside the browser. */
  readonly before?: (person: Person) => Promise<void>
  /** As the page of its creation is named. */
  readonly one: string
  /** The field with its name, which refuses text that would turn the text beside it around. */
  readonly named?: 'Name' | 'Title'
  /** Fills in the other fields that are needed. */
  readonly fill?: (hands: Hands) => Promise<void>
  /** Instead of a form: makes it on the page of another noun, and answers its name. */
  readonly make?: (hands: Hands) => Promise<string>
  /** Whether that name can be changed in its settings. */
  readonly isRenamed?: boolean
  /** More that is done with it, before it is deleted. */
  readonly use?: (hands: Hands, name: string) => Promise<void>
  /** The entry of its menu that deletes it. */
  readonly ends?: string
  /** Whether its name has to be typed for that. */
  readonly isTyped?: boolean
}

const ZONE = 'eu-1a'

/** A storage with that title. */
const storageOf = async ({ customer }: Person, title: string): Promise<void> => {
  const { body } = await customer.request<{ readonly operation: { readonly id: string } }>('POST', '/v1/storages', {
    zone: ZONE,
    title,
    size_gibibytes: 1,
  })
  await customer.finished(body.operation.id)
}
/** Opens the page of the storage. */
const toStorage = async ({ page, press }: Hands, title: string): Promise<void> => {
  await page.goto('/storages')
  await press(title, 'link')
  await page.getByRole('heading', { level: 1, name: title }).waitFor()
}
const SIMULATED = 'needs machines that run; those of this tier are simulated: pages.browser.test.ts looks at it'

/** Or where else it is done. A noun without one of both does not compile. */
export const LIVES: Readonly<Record<keyof typeof nouns, Life | string>> = {
  server: 'first-server, editors and tasks make, change, use and delete one',
  ssh_key: {
    path: '/ssh-keys',
    one: 'SSH key',
    named: 'Name',
    fill: ({ fill }) => fill('Public key', PUBLIC_KEY),
    isRenamed: true,
  },
  init_script: {
    path: '/init-scripts',
    one: 'init script',
    named: 'Name',
    fill: ({ fill }) => fill('Content', '#!/bin/sh'),
    isRenamed: true,
  },
  server_group: { path: '/server-groups', one: 'server group', named: 'Name', isRenamed: true },
  storage: { path: '/storages', one: 'storage', named: 'Title', isRenamed: true, isTyped: true },
  snapshot: {
    path: '/snapshots',
    one: 'snapshot',
    named: 'Title',
    before: (person) => storageOf(person, 'origin'),
    async make(hands) {
      await toStorage(hands, 'origin')
      await hands.press('Take snapshot')
      await hands.dialog('Take snapshot')
      await hands.fill('Title', 'first')
      await hands.answer('Take snapshot')
      return 'first'
    },
    isRenamed: true,
    isTyped: true,
  },
  backup: {
    path: '/backups',
    one: 'backup',
    before: (person) => storageOf(person, 'origin'),
    async make(hands) {
      await toStorage(hands, 'origin')
      await hands.menu('Back up now')
      await hands.dialog('Back up now')
      await hands.fill('Title', 'first')
      await hands.answer('Back up now')
      return 'first'
    },
    async use({ page, press, dialog, fill, answer, sees }, name) {
      await page.getByRole('main').getByText('online', { exact: true }).first().waitFor()
      await press('Restore')
      await dialog(`Restore ${name}?`)
      await fill(`Type ${name} to confirm`, name)
      await answer('Restore')
      await page.getByRole('main').getByText('online', { exact: true }).first().waitFor()
      await sees(name)
    },
    isTyped: true,
  },
  custom_image: {
    path: '/images',
    one: 'image',
    named: 'Title',
    before: (person) => storageOf(person, 'origin'),
    fill: ({ choose }) => choose('From a storage', 'origin'),
    isRenamed: true,
    isTyped: true,
  },
  network: { path: '/networks', one: 'network', named: 'Name', isRenamed: true, isTyped: true },
  router: { path: '/routers', one: 'router', named: 'Name', isRenamed: true, isTyped: true },
  floating_ip: { path: '/floating-ips', one: 'floating IP', ends: 'Release', isTyped: true },
  load_balancer: SIMULATED,
  edge: SIMULATED,
  database: SIMULATED,
  kubernetes_cluster: SIMULATED,
  dev_cluster: SIMULATED,
  playground: SIMULATED,
  webhook: 'editors has its whole life',
  audit_sink: 'editors has its whole life',
}
