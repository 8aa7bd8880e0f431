/** What an operator on call does: nodes that are closed, emptied and lost, resources that are stuck, and what waits.
 *  The nodes are those of a zone that no other file uses. */
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { faultsInEveryView } from './kit/access.ts'
import { confirm, open, usePortal } from './kit/browser.ts'
import { keyboardOf } from './kit/keyboard.ts'
import type { Person } from './kit/person.ts'
import { pressPower } from './kit/platform.ts'
import { newStaff, partsOf, type StaffMember } from './kit/staff.ts'

const portal = usePortal('operator_url')
const ZONE = 'eu-1c'
const [FIRST, SECOND] = [`${ZONE}-1`, `${ZONE}-2`] as const

const parts = partsOf(portal)

let operator: StaffMember
beforeAll(async () => {
  operator = await newStaff(parts, 'operations')
})
/** Nodes are as they were before. */
afterEach(async () => {
  for (const node of [FIRST, SECOND]) {
    const now = await stateOf(node)
    if (now === 'fenced') await powerOn(node)
    else if (now !== 'ready') await change(node, 'uncordon')
  }
})

interface NodeView {
  readonly node: { readonly state: string; readonly server_count: number; readonly active_operation: object | null }
}

const read = (node: string): Promise<NodeView> => operator.request('GET', `/v1/operator/nodes/${node}`, 200)
const stateOf = async (node: string): Promise<string> => (await read(node)).node.state

/** Beside the browser, to its end. */
async function change(node: string, action: 'cordon' | 'uncordon'): Promise<void> {
  await expect.poll(async () => (await read(node)).node.active_operation).toBeNull()
  await operator.request(
    'POST',
    `/v1/operator/nodes/${node}/${action}`,
    202,
    action === 'cordon' ? { reason: 'A test.' } : {},
  )
  await expect.poll(() => stateOf(node)).toBe(action === 'cordon' ? 'cordoned' : 'ready')
}

async function powerOn(node: string): Promise<void> {
  await pressPower(parts, node, 'On')
  await expect.poll(() => stateOf(node)).toBe('ready')
}

/** The zone has room for a few servers only. */
async function removed({ customer }: Person, id: string): Promise<void> {
  await expect.poll(async () => (await customer.server(id)).active_operation).toBeNull()
  await customer.finished((await customer.change('DELETE', `/v1/servers/${id}`)).id)
}

/** Servers on a node of which the zone has another. */
async function serversOn(node: string, person: Person, hostnames: readonly string[]): Promise<readonly string[]> {
  const other = node === FIRST ? SECOND : FIRST
  await change(other, 'cordon')
  await person.customer.addSshKey()
  const ids: string[] = []
  for (const hostname of hostnames) {
    const body = { zone: ZONE, hostname, plan: 'tiny', template: 'tiny-linux' }
    const { server, operation } = await person.customer.createServer(body)
    await person.customer.finished(operation.id)
    ids.push(server.id)
    onTestFinished(() => removed(person, server.id))
  }
  await change(other, 'uncordon')
  return ids
}

const state = (page: Page, word: string) => page.getByRole('main').getByText(word, { exact: true }).first()
const choose = async (page: Page, action: string): Promise<void> => {
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: action, exact: true }).click()
}

describe('a node', () => {
  it('is cordoned and opened again with the keyboard alone', async () => {
    const page = await portal.page({ as: operator })
    await open(page, '/nodes')
    const { press, fill, menu, dialog, answer, sees } = keyboardOf(page)
    await page.getByRole('row', { name: new RegExp(`${SECOND} ready ${ZONE}`) }).waitFor()
    await press(SECOND, 'link')
    await page.getByRole('heading', { level: 1, name: SECOND }).waitFor()
    await press('Cordon')
    await dialog(`Cordon ${SECOND}?`)
    await sees('It takes no new servers')
    await fill('Reason', 'A fan is loud.')
    await answer('Cordon')
    await state(page, 'cordoned').waitFor()
    await menu('Uncordon')
    await dialog(`Uncordon ${SECOND}?`)
    await answer('Uncordon')
    await state(page, 'ready').waitFor()
  })

  it('is drained while its progress is shown; its servers go on elsewhere', async () => {
    const person = await portal.signUp()
    const ids = await serversOn(FIRST, person, ['drained-1', 'drained-2'])
    const page = await portal.page({ as: operator })
    await open(page, `/nodes/${FIRST}`)
    await page.getByRole('button', { name: 'Drain', exact: true }).click()
    await page.getByRole('dialog').getByText('servers move to other nodes').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: /How$/ }).click()
    await page.getByRole('option', { name: 'While they run, else stop and start' }).click()
    await confirm(page, 'Drain')
    const progress = page.getByRole('group', { name: 'Progress' })
    await progress.getByText('node: drain').first().waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await progress.waitFor({ state: 'detached' })
    expect(await read(FIRST)).toMatchObject({ node: { state: 'maintenance', server_count: 0 } })
    await state(page, 'maintenance').waitFor()
    for (const id of ids) expect(await person.customer.server(id)).toMatchObject({ state: 'started' })
    await open(page, '/migrations')
    const moved = page.getByRole('row', { name: /drained-1/ }).first()
    await moved.getByText('succeeded').waitFor()
    await moved.getByRole('link').first().click()
    await page.getByRole('heading', { level: 1, name: 'server: migrate' }).waitFor()
    await page.getByRole('table', { name: 'Events' }).getByRole('row').nth(1).waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await change(FIRST, 'uncordon')
  })

  it('is not drained when its servers fit nowhere: they are named', async () => {
    const person = await portal.signUp()
    const [id] = await serversOn(SECOND, person, ['stays'])
    await change(FIRST, 'cordon')
    const page = await portal.page({ as: operator, allows: [/status of 503 .*\/drain$/] })
    await open(page, `/nodes/${SECOND}`)
    await page.getByRole('button', { name: 'Drain', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: /How$/ }).click()
    await page.getByRole('option', { name: 'Only while they run' }).click()
    await confirm(page, 'Drain')
    await page
      .getByRole('alert')
      .getByText(id ?? '')
      .waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await stateOf(SECOND)).toBe('ready')
  })

  it('waits for the hour that was announced, and the drain is cancelled', async () => {
    const page = await portal.page({ as: operator })
    await open(page, `/nodes/${SECOND}`)
    await page.getByRole('button', { name: 'Drain', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: /How$/ }).click()
    await page.getByRole('option', { name: 'Only while they run' }).click()
    await page.getByRole('dialog').getByLabel('Announce before').fill('24')
    await confirm(page, 'Drain')
    const progress = page.getByRole('group', { name: 'Progress' })
    await progress.getByText('announced').waitFor()
    await open(page, '/dashboard')
    await page
      .getByRole('row', { name: new RegExp(`node: drain.*${SECOND}`) })
      .first()
      .waitFor()
    await open(page, `/nodes/${SECOND}`)
    await progress.getByRole('button', { name: 'Cancel' }).click()
    await progress.waitFor({ state: 'detached' })
    await page.getByRole('tab', { name: 'Operations' }).click()
    await page
      .getByRole('row', { name: /node: drain.*cancelled/ })
      .first()
      .waitFor()
  })

  it('is fenced: what was tried and what proves it are shown, and an alarm fires until it is back', async () => {
    const page = await portal.page({ as: operator, allows: [/status of 409 .*\/fence$/] })
    await open(page, `/nodes/${FIRST}`)
    await page.getByText('Its BMC powers it off, and reports that it is off.').waitFor()
    // a node that still answers is not fenced by mistake
    await choose(page, 'Fence')
    const dialog = page.getByRole('alertdialog', { name: `Fence ${FIRST}?` })
    const evidence = async (): Promise<void> => {
      await dialog.getByRole('button', { name: /Evidence$/ }).click()
      await page.getByRole('option', { name: 'The first that works' }).click()
    }
    await dialog.getByText('With force: guests that still run and answer end too').waitFor()
    await evidence()
    await dialog.getByLabel('Reason').fill('Smoke.')
    await dialog.getByLabel(`Type ${FIRST} to confirm`).fill(FIRST)
    await confirm(page, 'Fence')
    await dialog.getByRole('alert').getByText(/force/).waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await dialog.getByText('By force', { exact: true }).click()
    await confirm(page, 'Fence')
    await state(page, 'fenced').waitFor()
    await page.getByRole('tab', { name: 'Operations' }).click()
    await page
      .getByRole('row', { name: /node: fence.*succeeded/ })
      .getByRole('link')
      .first()
      .click()
    await page
      .getByRole('table', { name: 'Events' })
      .getByText(/Its management controller said at .* that its power is off\./)
      .waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await open(page, '/alarms')
    await page.getByRole('row', { name: new RegExp(`Node is lost.*${FIRST}.*SvccloudNodeNotFenced`) }).waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await powerOn(FIRST)
    await open(page, '/alarms')
    await page.getByRole('row', { name: /Node is lost/ }).waitFor({ state: 'detached' })
  })
})

describe('capacity', () => {
  it('is shown by zone, and counts what servers use', async () => {
    const page = await portal.page({ as: operator })
    await open(page, '/dashboard')
    const row = page
      .getByRole('table', { name: 'Capacity by zone' })
      .getByRole('row', { name: new RegExp(`^${ZONE} `) })
    const used = async (): Promise<number> => Number(/(\d+) \/ \d+/.exec(await row.innerText())?.[1])
    for (const zone of ['eu-1a', 'eu-1b', ZONE])
      await page
        .getByRole('row', { name: new RegExp(`^${zone} .* 2 `) })
        .first()
        .waitFor()
    const before = await used()
    const person = await portal.signUp()
    await serversOn(SECOND, person, ['counted'])
    await open(page, '/dashboard')
    await expect.poll(used).toBe(before + 1)
    await change(SECOND, 'cordon')
    await open(page, '/nodes')
    await page.getByRole('row', { name: new RegExp(`${SECOND} cordoned`) }).waitFor()
  })
})

describe('a resource that is stuck', () => {
  it('is found with its condition and its events, until it gets on', async () => {
    const person = await portal.signUp()
    const [id] = await serversOn(FIRST, person, ['stuck'])
    // its host is lost, and its disk is there
    const fence = { method: 'power_off', reason: 'Smoke.', force: true }
    await operator.request('POST', `/v1/operator/nodes/${FIRST}/fence`, 202, fence)
    const page = await portal.page({ as: operator })
    await open(page, '/alarms')
    const row = page.getByRole('row', { name: /Resource is stalled.*server stuck/ })
    await row.getByRole('link', { name: 'Resource is stalled' }).click()
    await page.getByRole('heading', { level: 1, name: 'server stuck' }).waitFor()
    const wrong = page.getByRole('heading', { level: 2, name: 'What is wrong' })
    await wrong.waitFor()
    await page.getByRole('main').getByText(/host/).first().waitFor()
    await page.getByRole('table', { name: 'Events' }).getByRole('row').nth(1).waitFor()
    const operations = page.getByRole('table', { name: 'Activity' })
    await operations.getByRole('row', { name: /server: create.*succeeded/ }).waitFor()
    expect(await faultsInEveryView(page)).toEqual([])
    await expect.poll(() => stateOf(FIRST)).toBe('fenced')
    await powerOn(FIRST)
    await page.getByText('Nothing is wrong with it now.').waitFor()
    await operations
      .getByRole('row', { name: /server: start.*succeeded/ })
      .first()
      .waitFor()
    expect(await person.customer.server(id ?? '')).toMatchObject({ state: 'started' })
  })
})
