/** Pages and editors that are more than a noun: everybody can use them, in both themes and at every width. */
import { describe, expect, it } from 'vitest'
import { accessFaults, overflow } from './kit/access.ts'
import { open, usePortal } from './kit/browser.ts'
import { MANAGED_PATHS, showManaged } from './kit/managed.ts'
import type { Person } from './kit/person.ts'
import { serverOf } from './kit/server.ts'

const portal = usePortal()

/** An account with something on every page. */
async function rich(): Promise<{ readonly person: Person; readonly paths: readonly string[] }> {
  const person = await portal.signUp()
  const { customer } = person
  const server = await serverOf(person)
  const make = async (path: string, body: object): Promise<Readonly<Record<string, { readonly id: string }>>> => {
    const { status, body: answer } = await customer.request<Readonly<Record<string, { readonly id: string }>>>(
      'POST',
      path,
      body,
    )
    expect(status, path).toBeLessThan(300)
    return answer
  }
  const webhook = (await make('/v1/account/webhooks', { url: 'https://hooks.example.com/in', events: ['*'] }))[
    'webhook'
  ]?.id
  const sink = (
    await make('/v1/account/audit-sinks', { name: 'collector', type: 'https', url: 'https://logs.example.com/' })
  )['audit_sink']?.id
  await make(`/v1/account/webhooks/${webhook}/probe`, {})
  await make('/v1/object-storage', { zone: 'eu-1a' })
  return {
    person,
    paths: [
      '/webhooks',
      '/webhooks/new',
      `/webhooks/${webhook}`,
      `/webhooks/${webhook}?tab=deliveries`,
      `/webhooks/${webhook}?tab=settings`,
      '/audit-sinks',
      '/audit-sinks/new',
      `/audit-sinks/${sink}`,
      '/object-storage',
      `/servers/${server}?tab=firewall`,
      '/settings/billing',
      '/settings/support',
      '/settings/private-cloud',
      '/settings/security',
    ],
  }
}

const VIEWS = [
  ['light', 1360],
  ['dark', 768],
  ['light', 390],
  ['dark', 320],
] as const
type View = readonly [theme: (typeof VIEWS)[number][0], width: (typeof VIEWS)[number][1]]

async function look(person: Person, paths: readonly string[], [theme, width]: View): Promise<void> {
  const page = await portal.page({ as: person, theme, width })
  await showManaged(page, portal.url)
  for (const path of paths) {
    await open(page, path)
    expect(await overflow(page), path).toEqual([])
    expect(await accessFaults(page), path).toEqual([])
  }
}

describe('every page', () => {
  it.each(VIEWS)('of the account can be used by everybody in the theme %s, and fits in %s pixels', async (...view) => {
    const { person, paths } = await rich()
    await look(person, paths, view)
  })

  it.each(VIEWS)('of managed services can be used in the theme %s, and fits in %s pixels', async (...view) => {
    await look(await portal.signUp(), MANAGED_PATHS, view)
  })
})
