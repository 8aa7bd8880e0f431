/** `/control-plane`: the health of what the platform itself runs on. */
import type { ReactNode } from 'react'
import { useRead } from '../../api/cache.ts'
import { asRefusal } from '../../api/refusal.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Facts, Loading, Page, Panel, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { o } from '../texts/index.ts'

const Healthy = ({ is }: { readonly is: boolean }): ReactNode => (
  <State look={is ? 'good' : 'bad'}>{is ? o().plane.healthy : o().plane.unhealthy}</State>
)

export function ControlPlanePage(): ReactNode {
  const texts = o().plane
  const { data, error } = useRead('get_control_plane', {}, { isAlwaysStale: true })
  if (data === undefined)
    return (
      <Page title={texts.title} note={texts.note}>
        {error === null ? <Loading /> : <ProblemView refusal={asRefusal('get_control_plane', error)} />}
      </Page>
    )
  const { members, quorum, database, version, conditions } = data
  return (
    <Page title={texts.title} note={texts.note}>
      <Table
        label={texts.members}
        items={members.map((member) => ({ ...member, id: `${member.role} ${member.node_id}` }))}
        columns={[
          { id: 'member', name: texts.member, cell: ({ node_id: node }) => node },
          { id: 'role', name: texts.role, cell: ({ role }) => texts.roles[role] },
          { id: 'state', name: t().fields.state, cell: ({ is_healthy: is }) => <Healthy is={is} /> },
          { id: 'version', name: t().fields.version, cell: ({ version: each }) => each ?? '–' },
        ]}
      />
      <Panel title={texts.platform}>
        <Facts
          facts={[
            { name: t().fields.version, value: version },
            {
              name: texts.quorum,
              value: <State look={quorum ? 'good' : 'bad'}>{quorum ? t().ui.yes : t().ui.no}</State>,
            },
            ...conditions.map(({ status, message }) => ({
              name: texts.judged,
              value: (
                <Stack gap="tight">
                  <State look={status === 'True' ? 'good' : 'bad'}>{status === 'True' ? t().ui.yes : t().ui.no}</State>
                  <Soft>{message}</Soft>
                </Stack>
              ),
            })),
          ]}
        />
      </Panel>
      <Panel title={texts.database}>
        <Facts
          facts={[
            { name: texts.primary, value: <code>{database.primary}</code> },
            { name: texts.replicas, value: database.replicas.join(', ') || '–' },
            {
              name: texts.lag,
              value: database.lag_seconds === null ? '–' : `${number(database.lag_seconds, 1)} ${t().choices.seconds}`,
            },
          ]}
        />
      </Panel>
    </Page>
  )
}
