import { Webhook } from '../../../resources/webhook/index.ts'
import { asking, type Table } from '../refusals.ts'

const url = 'https://hooks.example.com/cloud'
const { create, change, remove, request, ofPlatform, creationNeeds } = asking('/account/webhooks', {
  name: 'hook',
  url,
  events: ['server.*'],
})
const BILLING = 'an owner may read bills; of a person at kubectl only the kind is known'

export const TABLE: Table = {
  resource: Webhook,
  async arrange(scene) {
    for (const name of ['front', 'billed', 'free', 'leaving'])
      await scene.make(name, '/account/webhooks', { name, url, events: ['*'] })
    await scene.request('DELETE', '/account/webhooks/:leaving')
  },
  rows: [
    create('at no URL', { url: 'hooks' }),
    create('without TLS', { url: 'http://hooks.example.com/' }),
    create('with credentials', { url: 'https://ada:secret@hooks.example.com/' }),
    create('with a fragment', { url: `${url}#part` }),
    create('at this machine', { url: 'https://127.0.0.1/' }),
    create('at a private address', { url: 'https://10.0.0.1/' }),
    create('at a private address in another spelling', { url: 'https://0x0a000001/' }),
    create('at a link-local address', { url: 'https://169.254.169.254/latest/meta-data' }),
    create('at a private address of IPv6', { url: 'https://[fd00::1]/' }),
    create('at a mapped address', { url: 'https://[::ffff:10.0.0.1]/' }),
    create('for no events', { events: [] }),
    create('for events that do not exist', { events: ['server.exploded'] }),
    create('for events of nothing', { events: ['unicorn.*'] }),
    create('for what is no pattern', { events: ['server.**'] }),
    create('for events of billing', { events: ['billing.standing'] }, { differs: BILLING }),
    create('with a name that nobody can read', { name: 'a\u0007' }),
    ...creationNeeds('quota'),
    ...ofPlatform('front'),
    create(''),

    change('send it to a private address', 'front', { url: 'https://192.168.0.1/' }),
    change('send it events that do not exist', 'front', { events: ['*.exploded'] }),
    change('send it events of billing', 'billed', { events: ['*', 'billing.*'] }, { differs: BILLING }),
    change(
      'change one that is being deleted',
      'leaving',
      { enabled: false },
      { differs: 'a webhook has no state: REST no longer shows one that is being deleted' },
    ),
    change('disable', 'front', { enabled: false }),
    request('change one that is not there', 'PATCH', '/nothing', { enabled: false }),

    request('delete one that is not there', 'DELETE', '/nothing'),
    remove('', 'free'),
  ],
}
