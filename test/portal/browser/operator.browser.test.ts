/** The portal of staff and operators, at its own listener. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { BUILT } from '../../../portal/build/stamp.ts'
import type { OperationRule } from '../../../portal/api/operations.ts'
import customerOperations from '../../../portal/generated/operations.json' with { type: 'json' }
import operatorOperations from '../../../portal/generated/operator-operations.json' with { type: 'json' }
import { accessFaults, overflow } from './kit/access.ts'
import { open, usePortal, WIDTHS } from './kit/browser.ts'
import { newAddress, type Visitor } from './kit/person.ts'
import { newStaff, partsOf, type StaffMember } from './kit/staff.ts'

const portal = usePortal('operator_url')
const { api_url: customerUrl } = portal.endpoints

const parts = partsOf(portal)

/** One member for the tests that change things. */
let operator: StaffMember
beforeAll(async () => {
  operator = await newStaff(parts, 'operations')
})

/** The zone in which no other file makes servers. */
const ZONE = 'eu-1b'

/** Paths that are read with a session alone, and name nothing. */
const readsOf = (operations: object): readonly string[] =>
  Object.values(operations as Readonly<Record<string, OperationRule>>) // the generated file has this shape
    .filter(({ method, path, permission, staffRole }) => {
      const isPublic = permission === undefined && staffRole === undefined
      return method === 'GET' && !path.includes('{') && !isPublic
    })
    .map(({ path }) => path)

const statusOf = async (url: string, { cookies, address }: Visitor): Promise<number> => {
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  const { status } = await fetch(url, { headers: { cookie, 'x-forwarded-for': address } })
  return status
}

describe('staff', () => {
  it('have no session here as customers, nor there as staff', async () => {
    const person = await portal.signUp()
    const page = await portal.page({ as: person, allows: [/status of 401 .*\/v1\/admin\/auth\/me$/] })
    await page.goto('/nodes')
    await page.getByRole('heading', { level: 1, name: 'Operations' }).waitFor()
    for (const path of readsOf(operatorOperations)) expect(await statusOf(portal.url + path, person), path).toBe(401)
    const staff = await newStaff(parts, 'operations')
    for (const path of readsOf(customerOperations)) expect(await statusOf(customerUrl + path, staff), path).toBe(401)
    // the same requests with the right session
    expect(await statusOf(`${portal.url}/v1/operator/nodes`, staff)).toBe(200)
    expect(await statusOf(`${customerUrl}/v1/servers`, person)).toBe(200)
  })

  it('get the files of their portal from their listener alone, under one policy', async () => {
    const manifest = JSON.parse(await readFile(join(BUILT, '.vite/manifest.json'), 'utf8')) as Readonly<
      Record<string, { readonly file: string }>
    > // as Vite writes it
    const nobody: Visitor = { cookies: [], address: newAddress() }
    const fileOf = (name: string) => `/${manifest[name]?.file ?? 'none'}`
    for (const name of ['operator.html', 'operator/pages/overview.tsx', 'operator/texts/de.ts']) {
      expect(await statusOf(portal.url + fileOf(name), nobody), name).toBe(200)
      expect(await statusOf(customerUrl + fileOf(name), nobody), name).toBe(404)
    }
    for (const name of ['index.html', 'pages/dashboard.tsx']) {
      expect(await statusOf(customerUrl + fileOf(name), nobody), name).toBe(200)
      expect(await statusOf(portal.url + fileOf(name), nobody), name).toBe(404)
    }
    const policyOf = async (url: string) =>
      (await fetch(`${url}/login`, { headers: { accept: 'text/html' } })).headers.get('content-security-policy')
    expect(await policyOf(portal.url)).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
    // customers' pages read and write objects in the stores of zones
    const ofCustomers = (await policyOf(customerUrl))?.replace(/connect-src [^;]*/, "connect-src 'self'")
    expect(await policyOf(portal.url)).toBe(ofCustomers)
  })

  it('see what their role may read, and no button of another role', async () => {
    const support = await newStaff(parts, 'support')
    const page = await portal.page({ as: support, allows: [/status of 403 .*\/v1\/admin\/coupons/] })
    await open(page, '/nodes')
    const navigation = page.getByRole('navigation', { name: 'Main navigation' })
    await navigation.getByRole('link', { name: 'Support sessions' }).waitFor()
    expect(await navigation.getByRole('link', { name: /Coupons|Invoices|Templates|Public pools/ }).count()).toBe(0)
    await page.getByRole('link', { name: `${ZONE}-1` }).click()
    await page.getByRole('heading', { level: 1, name: `${ZONE}-1` }).waitFor()
    expect(await page.getByRole('button', { name: /Drain|Cordon|Fence|More actions/ }).count()).toBe(0)
    await open(page, '/coupons')
    await page.getByText('Your role does not include this.').waitFor()
  })
})

describe('requests of customers', () => {
  it('for a private cloud are taken on, and declined with a reason', async () => {
    const person = await portal.signUp()
    await person.customer.request('POST', '/v1/private-cloud/requests', {
      vcpus: 64,
      memory_gibibytes: 256,
      disk_gigabytes: 1000,
      notes: '<b>soon</b>',
    })
    const page = await portal.page({ as: operator })
    await open(page, '/private-cloud')
    await page.getByRole('link', { name: person.email }).click()
    await page.getByText('<b>soon</b>').waitFor()
    await page.getByRole('button', { name: 'Take on' }).click()
    await page.getByText('in review', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Fulfil' }).click()
    await page.getByRole('dialog').getByText('Empty nodes.').first().waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Decline' }).click()
    await page.getByRole('dialog').getByLabel('Answer to the customer').fill('No hosts are free.')
    await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click()
    await page.getByText('declined', { exact: true }).first().waitFor()
    const { body } = await person.customer.request<{ items: readonly { state: string; staff_reason: string }[] }>(
      'GET',
      '/v1/private-cloud/requests',
    )
    expect(body.items).toMatchObject([{ state: 'declined', staff_reason: 'No hosts are free.' }])
  })
})

/** Every page that a role reads, with an item of each kind where the product has one. */
const PAGES = [
  '/dashboard',
  '/nodes',
  '/nodes/new',
  `/nodes/${ZONE}-2`,
  '/public-pools',
  '/public-pools/new',
  '/kubernetes-hosts',
  '/kubernetes-hosts/new',
  '/templates',
  '/templates/new',
  '/alarms',
  '/operations',
  '/migrations',
  '/accounts',
  '/quota-requests',
  '/private-cloud',
  '/control-plane',
  '/storage-policies',
]
const PAGES_OF: Readonly<Record<'finance' | 'support', readonly string[]>> = {
  finance: ['/coupons', '/coupons/new', '/billing'],
  support: ['/support-sessions', '/audit'],
}

async function everyPage(
  options: Parameters<typeof portal.page>[0],
  look: (page: Page, path: string) => Promise<void>,
): Promise<void> {
  const roles = [
    ['operations', PAGES] as const,
    ...(['finance', 'support'] as const).map((role) => [role, PAGES_OF[role]] as const),
  ]
  for (const [role, paths] of roles) {
    // zones without shared storage have no policy
    const allows = role === 'operations' ? [/status of 409 .*\/storage-policy$/] : []
    const page = await portal.page({ ...options, allows, as: await newStaff(parts, role) })
    for (const path of paths) {
      await open(page, path)
      await look(page, path)
    }
  }
}

describe('pages of staff', () => {
  it.each(['light', 'dark'] as const)('can be used by everybody in the theme %s', async (theme) => {
    await everyPage({ theme }, async (page, path) => expect(await accessFaults(page), path).toEqual([]))
  })

  it.each(WIDTHS)('fit in %s pixels', async (width) => {
    await everyPage({ width }, async (page, path) => expect(await overflow(page), path).toEqual([]))
  })

  it('are where g and a letter go, and those of customers are nowhere', async () => {
    const page = await portal.page({ as: operator })
    await open(page, '/alarms')
    await page.keyboard.press('g')
    // load balancers of customers, and the audit log here
    await page.keyboard.press('l')
    await page.getByRole('heading', { level: 1, name: 'Audit of staff' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('n')
    await page.getByRole('heading', { level: 1, name: 'Nodes' }).waitFor()
    await page.keyboard.press('?')
    const help = page.getByRole('dialog')
    await help.getByText('g n').waitFor()
    expect(await help.getByText('Databases').count()).toBe(0)
  })

  it('are in the language of the browser', async () => {
    const page = await portal.page({ as: operator, locale: 'de-DE' })
    await open(page, '/nodes')
    await page.getByRole('heading', { level: 1, name: 'Knoten' }).waitFor()
  })
})
