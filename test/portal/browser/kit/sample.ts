/** What pictures of the portals show. */
import type { Person } from './person.ts'
import type { StaffMember } from './staff.ts'

/** Something of most kinds, so that pages are not empty. */
export async function fill({ customer }: Person): Promise<void> {
  await customer.addSshKey()
  const { server, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'web-1',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  await customer.finished(operation.id)
  await customer.createServer({ zone: 'eu-1b', hostname: 'web-2', plan: 'tiny', template: 'tiny-linux' })
  await customer.request('POST', '/v1/storages', { zone: 'eu-1a', title: 'data', size_gibibytes: 10 })
  await customer.request('POST', '/v1/init-scripts', { name: 'first-boot', content: '#!/bin/sh\necho hello\n' })
  const restart = await customer.change('POST', `/v1/servers/${server.id}/restart`)
  await customer.finished(restart.id)
  await customer.request('POST', '/v1/account/webhooks', { url: 'https://hooks.example.com/in', events: ['*'] })
  const sink = { name: 'logs', type: 'https', url: 'https://logs.example.com/' }
  await customer.request('POST', '/v1/account/audit-sinks', sink)
  await customer.request('POST', '/v1/object-storage', { zone: 'eu-1a' })
}

/** What waits for staff. */
export async function ask({ customer }: Person, finance: StaffMember): Promise<void> {
  const hosts = { vcpus: 64, memory_gibibytes: 256, disk_gigabytes: 1000, notes: 'For the data centre in Bonn.' }
  await customer.request('POST', '/v1/private-cloud/requests', hosts)
  const more = { name: 'servers', limit: 100, reason: 'A fair in May.' }
  await customer.request('POST', '/v1/account/quota-requests', more)
  await finance.request('POST', '/v1/admin/coupons', 201, { code: 'WELCOME', amount_cents: 500 })
}
