/** What every noun has, on servers and on the others: empty lists, live changes, hostile names, access. */
import { beforeAll, describe, expect, it } from 'vitest'
import { accessFaults, overflow } from './kit/access.ts'
import { open, usePortal, WIDTHS } from './kit/browser.ts'
import { NOUNS } from './kit/paths.ts'
import type { Person } from './kit/person.ts'

const portal = usePortal()

const HOSTILE = '<img src=x onerror="document.title=1"> x'
const LONG = 'a-long-name-for-a-server-in-a-narrow-window'
const newServer = (hostname: string, title = '') => ({
  zone: 'eu-1a',
  hostname,
  title,
  plan: 'tiny',
  template: 'tiny-linux',
})

/** Has nothing. */
let newcomer: Person
/** Has a key and a server. */
let owner: Person

beforeAll(async () => {
  newcomer = await portal.signUp()
  owner = (await newOwner()).owner
})

/** Tests that open many pages have an own one: the requests of a minute are bounded for each person. */
async function newOwner(): Promise<{ readonly owner: Person; readonly serverId: string }> {
  const person = await portal.signUp()
  await person.customer.addSshKey()
  const { server, operation } = await person.customer.createServer(newServer(LONG))
  await person.customer.finished(operation.id)
  return { owner: person, serverId: server.id }
}

const pathsOf = (server: string): readonly string[] => [
  '/dashboard',
  '/servers',
  '/servers/new',
  `/servers/${server}`,
  `/servers/${server}?tab=settings`,
  '/activity',
  '/audit',
  '/settings/members',
  '/settings/quotas',
]

describe('nouns', () => {
  it.each(NOUNS)('%s: an empty list says what it is for', async (path, title) => {
    const page = await portal.page({ as: newcomer })
    await open(page, path)
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    await page.getByRole('heading', { level: 2 }).first().waitFor()
    expect(await accessFaults(page)).toEqual([])
  })

  it.each(['light', 'dark'] as const)('can be used by everybody in the theme %s', async (theme) => {
    const { owner: person, serverId } = await newOwner()
    const page = await portal.page({ as: person, theme })
    for (const path of pathsOf(serverId)) {
      await open(page, path)
      expect(await accessFaults(page), path).toEqual([])
    }
  })

  it.each(WIDTHS)('fit in %s pixels', async (width) => {
    const { owner: person, serverId } = await newOwner()
    const page = await portal.page({ as: person, width })
    for (const path of pathsOf(serverId)) {
      await open(page, path)
      expect(await overflow(page), path).toEqual([])
    }
  })

  it('are in the language of the browser', async () => {
    const page = await portal.page({ as: owner, locale: 'de-DE' })
    await open(page, '/servers/new')
    await page.getByRole('heading', { level: 1, name: 'Server erstellen' }).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe('de')
  })

  it('show what others change by the stream alone', async () => {
    const page = await portal.page({ as: owner })
    // whatever the list reads is empty: a row can only come from the stream
    await page.route(/\/v1\/servers\?/, (route) => route.fulfill({ json: { items: [], next_cursor: null } }))
    await open(page, '/servers')
    await page.getByRole('button', { name: 'Changes arrive live' }).waitFor()
    await owner.customer.createServer(newServer('elsewhere'))
    await page.getByRole('row', { name: /elsewhere.* started/ }).waitFor()
  })

  it.each([
    ['letters from right to left', 'שלום (1) <b>x</b>'],
    ['one long word', 'w'.repeat(100)],
    ['a name that every object has', 'constructor'],
    ['a format of texts', '%s {name} ${name} \\n'],
  ])('show %s as text, and in their width', async (_name, name) => {
    const person = await portal.signUp()
    const body = { name, content: '#!/bin/sh\n' }
    const { status, body: made } = await person.customer.request<{ readonly init_script: { readonly id: string } }>(
      'POST',
      '/v1/init-scripts',
      body,
    )
    expect(status).toBe(201)
    const page = await portal.page({ as: person, width: 320 })
    for (const path of ['', `/${made.init_script.id}`, `/${made.init_script.id}?tab=settings`]) {
      await open(page, `/init-scripts${path}`)
      await page.getByRole('main').getByText(name, { exact: true }).first().waitFor()
      expect(await overflow(page), path).toEqual([])
    }
    // the properties are in the settings
    await expect.poll(() => page.getByRole('definition').allInnerTexts(), { timeout: 60_000 }).toContain(name)
  })

  it('show hostile names as text', async () => {
    const { server } = await owner.customer.createServer(newServer('hostile', HOSTILE))
    const page = await portal.page({ as: owner })
    for (const path of ['/servers', `/servers/${server.id}`]) {
      await open(page, path)
      await page.getByText('<img src=x onerror=').first().waitFor()
      expect(await page.locator('img').count()).toBe(0)
      expect(await page.title()).not.toBe('1')
    }
  })
})
