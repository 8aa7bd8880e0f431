import { ServerGroup } from '../../../resources/server-group/index.ts'
import { asking, makeGuest, type Table } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, change, remove, request, ofPlatform, creationNeeds } = asking('/server-groups', { name: 'new', zone })

export const TABLE: Table = {
  resource: ServerGroup,
  async arrange(scene) {
    for (const name of ['front', 'other', 'free', 'inhabited', 'leaving'])
      await scene.make(name, '/server-groups', { name, zone })
    await makeGuest('web', undefined, scene, { server_group_id: ':inhabited' })
    await scene.request('DELETE', '/server-groups/:leaving')
  },
  rows: [
    create('in no zone', { zone: 'nowhere' }),
    create('on hosts of no zone', { zone: undefined }),
    create('in the region of another zone', { region: 'eu-2' }),
    create('across no region', { spread: 'zone', zone: undefined }),
    create('across the zones of no region', { spread: 'zone', zone: undefined, region: 'nowhere' }),
    create(
      'across zones, in one',
      { spread: 'zone' },
      { differs: 'a request of REST may name the region by a zone, and the region is stored' },
    ),
    create('with both spellings of strict', {}, { rest: { strict: true, policy: 'strict' }, kubectl: false }),
    create('without a name', { name: '' }),
    create('with a name that nobody can read', { name: 'a\u0007' }),
    create('with the name of another', { name: 'front' }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('front'),
    create(''),

    change('rename as another', 'front', { name: 'other' }),
    change('rename so that nobody can read it', 'front', { name: 'a\u0007' }),
    change(
      'rename one that is being deleted',
      'leaving',
      { name: 'left' },
      { differs: 'a group has no state: REST no longer shows one that is being deleted' },
    ),
    change('rename', 'front', { name: 'renamed' }),
    change('spread otherwise', 'front', { spread: 'rack' }, { rest: false }),
    change('make it strict', 'front', { strict: true }, { rest: false }),
    change('move', 'front', { zone: 'bare' }, { rest: false }),
    request('change one that is not there', 'PATCH', '/nothing', { name: 'a' }),

    remove('one with a server', 'inhabited'),
    remove('', 'free'),
  ],
}
