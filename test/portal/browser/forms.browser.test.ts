/** Forms in which something is wrong, and pages whose reads fail in the background. */
import { describe, expect, it } from 'vitest'
import { focused } from './kit/access.ts'
import { open, usePortal } from './kit/browser.ts'
import { serverOf } from './kit/server.ts'

const portal = usePortal()

describe('a form', () => {
  it('shows what is wrong where nobody sees it: the focus goes there, and what is closed opens', async () => {
    const page = await portal.page({ as: await portal.signUp() })
    await open(page, '/audit-sinks/new')
    await page.getByLabel('Name').fill('logs')
    await page.getByLabel('Address', { exact: true }).fill('https://logs.example.com/')
    await page.getByText('More settings').click()
    await page
      .getByLabel(/^Begin after|^Start after|entry/i)
      .first()
      .fill('ten')
    await page.getByText('More settings').click()
    await page.getByRole('button', { name: 'Create audit sink' }).click()
    await page.getByText('A whole number').waitFor()
    await expect.poll(() => focused(page)).toMatch(/^textbox/)
    expect(await page.getByText('A whole number').isVisible()).toBe(true)
  })

  it('in a dialog has the focus in its first fault, whoever finds it', async () => {
    const person = await portal.signUp()
    await person.customer.request('POST', '/v1/init-scripts', { name: 'boot', content: '#!/bin/sh\n' })
    const page = await portal.page({ as: person, allows: [/status of 400 .*\/quota-requests$/] })
    await open(page, '/init-scripts')
    await page.getByRole('link', { name: 'boot' }).click()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('x'.repeat(300))
    await dialog.getByLabel('Name').press('Tab')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => focused(page)).toMatch(/^textbox "Name/)
    // the service finds what is wrong here
    await open(page, '/settings/quotas')
    await page.getByRole('button', { name: 'Ask for more' }).first().click()
    await dialog.getByRole('button', { name: 'Ask for more' }).click()
    await dialog.getByRole('alert').waitFor()
    await expect.poll(() => focused(page)).toMatch(/^textbox "New limit/)
  })

  it('for several webhooks keeps those that were refused, and shows the secrets of the others', async () => {
    const person = await portal.signUp()
    for (const name of ['first', 'second']) {
      const body = { url: `https://hooks.example.com/${name}`, events: ['*'], name }
      expect((await person.customer.request('POST', '/v1/account/webhooks', body)).status).toBe(201)
    }
    const page = await portal.page({ as: person, allows: [/status of 409 /] })
    await open(page, '/webhooks')
    const rotations: string[] = []
    await page.route(/\/v1\/account\/webhooks\/[^/]+\/rotate/, async (route) => {
      rotations.push(route.request().url())
      if (rotations.length > 1) return await route.continue()
      await route.fulfill({ status: 409, json: { status: 409, title: 'Conflict', detail: 'Not now.' } })
    })
    await page.getByRole('checkbox', { name: 'Select all' }).press('Space')
    await page.getByRole('button', { name: 'Rotate secret' }).click()
    await page.getByRole('button', { name: 'Rotate secret', exact: true }).last().click()
    await page.getByRole('alert').getByText('Not now.').waitFor()
    // one is left in the question
    await page.getByRole('heading', { name: /^Rotate secret (first|second)\?$/ }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    const once = page.getByRole('dialog', { name: 'Keep this now' })
    await once.getByText(/^whsec_/).waitFor()
    expect(await once.getByText(/^whsec_/).count()).toBe(1)
  })

  it('asks before a role of an edge is removed', async () => {
    const page = await portal.page({ as: await portal.signUp() })
    const edge = {
      id: 'e',
      name: 'edge',
      state: 'running',
      roles: ['bastion', 'nat_gateway'],
      labels: {},
      zone: 'eu-1a',
      active_operation: null,
      created_at: '2026-01-01T00:00:00Z',
      network_id: 'n',
      placement: 'combined',
    }
    const changes: string[] = []
    await page.route(/\/v1\/edges\/e$/, async (route) => {
      const body = route.request().postData()
      if (body !== null) changes.push(body)
      await route.fulfill({ json: { edge } })
    })
    await page.route(/\/v1\/networks\/n$/, (route) => route.fulfill({ json: { network: { id: 'n', name: 'net' } } }))
    await open(page, '/edges/e?tab=settings')
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.getByRole('dialog').getByText('nat gateway').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    const question = page.getByRole('alertdialog')
    await question.getByText('The way out to the Internet').waitFor()
    expect(changes).toEqual([])
    await question.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => changes).toEqual([JSON.stringify({ roles: ['bastion'] })])
  })
})

describe('a page whose read fails in the background', () => {
  it('keeps the draft of a firewall', async () => {
    const person = await portal.signUp()
    const id = await serverOf(person)
    const page = await portal.page({ as: person, allows: [/status of 503 .*\/firewall$/] })
    await open(page, `/servers/${id}?tab=firewall`)
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByRole('textbox', { name: 'Ports' }).fill('8443')
    let refused = 0
    await page.route(/\/firewall$/, async (route) => {
      if (route.request().method() !== 'GET') return await route.continue()
      refused += 1
      await route.fulfill({ status: 503, json: { status: 503, title: 'Unavailable', detail: 'Not now.' } })
    })
    // an operation of the server reads its firewall again
    await person.customer.finished((await person.customer.change('POST', `/v1/servers/${id}/restart`)).id)
    // as often as a passing failure is tried
    await expect.poll(() => refused).toBeGreaterThanOrEqual(4)
    await page.getByRole('textbox', { name: 'Ports' }).waitFor()
    expect(await page.getByRole('textbox', { name: 'Ports' }).inputValue()).toBe('8443')
    await page.unroute(/\/firewall$/)
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('There are no changes.').first().waitFor()
  })
})

describe('the form of a dev cluster', () => {
  it('offers the versions that the service has', async () => {
    const page = await portal.page({ as: await portal.signUp() })
    const items = ['1.36', '1.35'].map((version) => ({ version, status: 'supported' }))
    await page.route('**/v1/dev-clusters/versions', (route) => route.fulfill({ json: { items, next_cursor: null } }))
    await open(page, '/dev-clusters/new')
    await page.getByText('More settings').click()
    await page.getByRole('button', { name: /Version/ }).click()
    await page.getByRole('option', { name: '1.35' }).click()
    await page
      .getByText(/--version 1\.35/)
      .first()
      .waitFor()
  })
})

describe('a link of a mail', () => {
  it('works in another language, too', async () => {
    const page = await portal.page()
    await page.goto('/verify-email#token=of-a-mail')
    await page.getByRole('button', { name: 'Verify my address' }).waitFor()
    await page.getByRole('button', { name: 'Deutsch' }).click()
    await page.getByRole('button', { name: 'Meine E-Mail-Adresse bestätigen' }).waitFor()
    expect(new URL(page.url()).hash).toBe('')
  })
})

describe('the audit log', () => {
  it('is saved whole, and its page stays', async () => {
    const page = await portal.page({ as: await portal.signUp() })
    await open(page, '/audit')
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download the log' }).click()
    expect((await saved).suggestedFilename()).toBe('audit.ndjson')
    await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor()
  })
})
