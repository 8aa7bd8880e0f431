/** Playgrounds: free clusters for some hours. */
import { TentTree } from 'lucide-react'
import { useRead } from '../../api/cache.ts'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'

const useRegions = () => (useRead('get_playground_offer').data?.regions ?? []).map((name) => ({ id: name, name }))

export const playground = noun({
  name: 'playground',
  area: 'services',
  icon: TentTree,
  path: '/playgrounds',
  list: 'list_playgrounds',
  read: 'get_playground',
  create: 'start_playground',
  member: 'playground',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { ready: 'good', deleted: 'off' },
  columns: ['region', 'expires_at', 'created_at'],
  facts: ['endpoint', 'app_domain', 'region', 'expires_at', 'end_reason', 'failure_reason', 'created_at'],
  form: [{ name: 'region', as: 'cards', useOptions: useRegions, isFirstChosen: true }],
  actions: [
    {
      operation: 'end_playground',
      why: ({ state }) => (state === 'ready' || state === 'provisioning' ? undefined : t().choices.notRunning(state)),
      confirm: { goes: () => [t().choices.goesWorkloads] },
    },
  ],
  secret: 'get_playground_kubeconfig',
})
