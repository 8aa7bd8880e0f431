/** What staff do for customers: they find an account, suspend it and grant credit, issue coupons, enter it with
 *  consent, raise quotas, and give out networks of addresses. Each is refused what the rules refuse. */
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { faultsInEveryView } from './kit/access.ts'
import { confirm, dialogOf, open, usePortal } from './kit/browser.ts'
import { keyboardOf } from './kit/keyboard.ts'
import type { Person } from './kit/person.ts'
import { newStaff, partsOf, type StaffMember } from './kit/staff.ts'

const portal = usePortal('operator_url')

const parts = partsOf(portal)

let operations: StaffMember
let finance: StaffMember
let support: StaffMember
beforeAll(async () => {
  operations = await newStaff(parts, 'operations')
  finance = await newStaff(parts, 'finance')
  support = await newStaff(parts, 'support')
})

/** As staff see it. */
async function accountOf({ customer }: Person): Promise<{ readonly id: string; readonly name: string }> {
  const { body } = await customer.request<{ account: { id: string; name: string } }>('GET', '/v1/account')
  return body.account
}

/** The list, narrowed to the account of a person, and its page. */
async function find(page: Page, person: Person): Promise<void> {
  const { name } = await accountOf(person)
  await open(page, '/accounts')
  await page.getByRole('searchbox', { name: 'Filter' }).fill(person.email)
  const row = page.getByRole('row', { name: new RegExp(person.email) })
  await row.waitFor()
  await expect.poll(() => page.getByRole('table', { name: 'Accounts' }).getByRole('row').count()).toBe(2)
  await row.getByRole('link').first().click()
  await page.getByRole('heading', { level: 1, name }).waitFor()
}

describe('an account', () => {
  it('is found, suspended by its name with a reason, and goes on after that is lifted', async () => {
    const person = await portal.signUp()
    const { name } = await accountOf(person)
    const page = await portal.page({ as: operations })
    await find(page, person)
    await page.getByRole('main').getByText('in good standing').first().waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Suspend' }).click()
    const dialog = dialogOf(page)
    await dialog.getByText('What runs keeps running').waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await dialog.getByLabel('Reason').fill('It sends spam.')
    await dialog.getByLabel(`Type ${name} to confirm`).fill(name)
    await confirm(page, 'Suspend')
    await page.getByRole('main').getByText('suspended by staff').first().waitFor()
    const storage = { zone: 'eu-1a', title: 'refused', size_gibibytes: 1 }
    expect(await person.customer.request('POST', '/v1/storages', storage)).toMatchObject({ status: 402 })
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Lift the suspension' }).click()
    await confirm(page, 'Lift the suspension')
    await page.getByRole('main').getByText('in good standing').first().waitFor()
    expect(await person.customer.request('POST', '/v1/storages', storage)).toMatchObject({ status: 202 })
  })

  it('gets credit with the keyboard alone, by whoever may grant it', async () => {
    const person = await portal.signUp()
    const { id, name } = await accountOf(person)
    const page = await portal.page({ as: finance })
    await open(page, `/accounts/${id}`)
    const { press, fill, dialog, answer, sees } = keyboardOf(page)
    await press('Grant credit')
    await dialog(`Grant credit ${name}?`)
    await fill('Label', 'For the outage')
    await press('Grant credit')
    await sees('Is needed')
    await fill('Amount', '12,505')
    await press('Grant credit')
    await sees('An amount in euros, such as 12.50')
    await fill('Amount', '12,50')
    await answer('Grant credit')
    const { credit_balance_cents: cents } = await finance.request<{ readonly credit_balance_cents: number }>(
      'GET',
      `/v1/admin/accounts/${id}`,
      200,
    )
    expect(cents).toBeGreaterThanOrEqual(1250)
    await sees(`€${(cents / 100).toFixed(2)}`)
    expect(await page.getByRole('button', { name: /Suspend/ }).count()).toBe(0)
    const others = await portal.page({ as: support })
    await open(others, `/accounts/${id}`)
    expect(await others.getByRole('button', { name: /Grant credit|More actions/ }).count()).toBe(0)
  })

  it('shows its people on a press, which the customer reads, and disables one', async () => {
    const person = await portal.signUp()
    const { id } = await accountOf(person)
    const page = await portal.page({ as: operations })
    await open(page, `/accounts/${id}?tab=people`)
    const looks = async () =>
      (await person.customer.request<{ items: readonly object[] }>('GET', '/v1/audit?action=account.members_read')).body
        .items.length
    expect(await looks()).toBe(0)
    await page.getByRole('button', { name: 'Show the people' }).click()
    const row = page.getByRole('row', { name: new RegExp(person.email) })
    await row.getByText('may sign in').waitFor()
    expect(await looks()).toBe(1)
    expect(await faultsInEveryView(page)).toEqual([])
    await row.getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('It was asked for.')
    await confirm(page, 'Disable')
    await row.getByText('disabled', { exact: true }).waitFor()
    await row.getByRole('button', { name: 'Enable' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('It was a mistake.')
    await confirm(page, 'Enable')
    await row.getByText('may sign in').waitFor()
    const others = await portal.page({ as: finance })
    await open(others, `/accounts/${id}?tab=people`)
    const show = others.getByRole('button', { name: 'Show the people' })
    expect(await show.getAttribute('aria-disabled')).toBe('true')
  })

  it('has credit revoked by finance', async () => {
    const person = await portal.signUp()
    const { id } = await accountOf(person)
    const granted = { label: 'A mistake', amount_cents: 700 }
    await finance.request('POST', `/v1/admin/accounts/${id}/credits`, 201, granted)
    const page = await portal.page({ as: finance })
    await open(page, `/accounts/${id}?tab=credits`)
    const row = page.getByRole('row', { name: /A mistake/ })
    await row.getByText('in use').waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await row.getByRole('button', { name: 'Revoke' }).click()
    await dialogOf(page).getByText('The remaining €7.00').waitFor()
    await confirm(page, 'Revoke')
    await row.getByText('revoked').waitFor()
  })

  it('gets a higher quota, which it has asked for', async () => {
    const person = await portal.signUp()
    const { id } = await accountOf(person)
    const asked = { name: 'servers', limit: 77, reason: 'A fair in May.' }
    expect(await person.customer.request('POST', '/v1/account/quota-requests', asked)).toMatchObject({ status: 201 })
    const page = await portal.page({ as: operations })
    await open(page, '/quota-requests')
    await page
      .getByRole('row', { name: new RegExp(person.email) })
      .getByRole('link', { name: 'servers: 77' })
      .click()
    await page.getByRole('button', { name: 'Take on' }).click()
    await page.getByRole('main').getByText('in review').first().waitFor()
    await page.getByRole('button', { name: 'Grant' }).click()
    await page.getByRole('dialog').getByLabel('Limit').fill('50')
    await confirm(page, 'Grant')
    await page.getByRole('main').getByText('granted').first().waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await open(page, `/accounts/${id}?tab=quotas`)
    await page.getByLabel('New limit').fill('51')
    await page.getByRole('button', { name: 'Set', exact: true }).click()
    await page.getByText('servers is 51 now').first().waitFor()
  })
})

describe('a coupon', () => {
  it('is made, refused a second time, changed, and redeemed by a customer', async () => {
    const code = `fair${randomUUID().slice(0, 6)}`
    const page = await portal.page({ as: finance, allows: [/status of 409 .*\/coupons$/] })
    for (const isFirst of [true, false]) {
      await open(page, '/coupons/new')
      await page.getByLabel('Code').fill(code)
      await page.getByLabel('Amount').fill('5')
      await page.getByRole('button', { name: 'Create coupon' }).click()
      if (isFirst) await page.getByRole('heading', { level: 1, name: code }).waitFor()
      else await page.getByRole('alert').waitFor()
    }
    expect(await faultsInEveryView(page)).toEqual([])
    await open(page, '/coupons')
    await page.getByRole('link', { name: code }).click()
    await page.getByRole('button', { name: 'Change', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Redemptions at most').fill('1')
    await confirm(page, 'Change')
    const redeem = async () => (await portal.signUp()).customer.request('POST', '/v1/account/coupons', { code })
    const outcomes = [(await redeem()).status, (await redeem()).status]
    expect(outcomes[0]).toBeLessThan(300)
    expect(outcomes[1]).toBeGreaterThanOrEqual(400)
    await open(page, '/coupons')
    await page.getByRole('row', { name: new RegExp(`${code} active €5.00 1 1`) }).waitFor()
  })
})

describe('a support session', () => {
  it('needs the consent of the customer, is shown to them, and ends', async () => {
    const person = await portal.signUp()
    const { id } = await accountOf(person)
    const page = await portal.page({
      as: support,
      opens: [portal.endpoints.api_url],
      allows: [/status of 40[39] .*\/support-sessions$/],
    })
    await open(page, `/accounts/${id}?tab=support`)
    const button = page.getByRole('button', { name: 'Open a support session', exact: true })
    await page.getByLabel('Reason').fill('A disk that does not attach')
    await page.getByRole('button', { name: /How$/ }).click()
    await page.getByRole('option', { name: 'Can change' }).click()
    await button.click()
    await page
      .getByRole('alert')
      .getByText(/consent/i)
      .first()
      .waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    const own = await portal.page({ as: person, at: portal.endpoints.api_url })
    await open(own, '/settings/support')
    await own.getByRole('button', { name: 'Give consent' }).click()
    await own
      .getByRole('dialog')
      .getByRole('button', { name: /Access$/ })
      .click()
    await own.getByRole('option', { name: /^Read and change/ }).click()
    await confirm(own, 'Give consent')
    await own.getByRole('row').getByText('valid').waitFor()
    await button.click()
    const tab = page.context().waitForEvent('page')
    await page.getByRole('button', { name: 'Enter the account' }).click()
    const inside = await tab
    await inside.getByRole('heading', { level: 1 }).waitFor()
    await inside.getByRole('button', { name: 'Enter the account' }).click()
    await inside.getByRole('region', { name: /^Support session of/ }).waitFor()
    await inside.getByText('A disk that does not attach').waitFor()
    await open(page, '/support-sessions')
    const row = page.getByRole('row', { name: /A disk that does not attach/ })
    await row.waitFor()
    await inside.getByRole('button', { name: 'End the session' }).click()
    await open(page, '/support-sessions')
    await row.waitFor({ state: 'detached' })
    await open(own, '/audit')
    await own
      .getByText(/support/)
      .first()
      .waitFor()
  })
})

describe('a public pool', () => {
  const cidr = '203.0.113.64/29'

  it('is made, refused where it overlaps, drained, and deleted by its network with the keyboard alone', async () => {
    const page = await portal.page({
      as: operations,
      allows: [/status of 409 .*\/public-pools$/],
      permits: [/status of 404 .*\/public-pools\/[^/]+$/],
    })
    await open(page, '/public-pools/new')
    const { press, fill, choose, menu, dialog, answer, sees } = keyboardOf(page)
    await choose('Family', 'ipv4')
    await fill('Network', cidr)
    await choose('For', 'Floating IPs')
    await press('Create public pool')
    await page.getByRole('heading', { level: 1, name: cidr }).waitFor()
    await open(page, '/public-pools/new')
    await choose('Family', 'ipv4')
    await fill('Network', cidr)
    await choose('For', 'Floating IPs')
    await press('Create public pool')
    await page.getByRole('alert').waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await open(page, '/public-pools')
    await press(cidr, 'link')
    await press('Change')
    await dialog(`Change ${cidr}?`)
    await choose('State optional', 'draining')
    await answer('Change')
    await sees('draining')
    await menu('Delete')
    await dialog(`Delete ${cidr}?`)
    await fill(`Type ${cidr} to confirm`, cidr)
    await answer('Delete')
    await open(page, '/public-pools')
    await page.getByRole('link', { name: cidr }).waitFor({ state: 'detached' })
  })
})
