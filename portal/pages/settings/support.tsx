/** Who of the support may enter the account, until when; and the organisation that the account belongs to. */
import { Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import type { PlatformOrganisation } from '../../../client/schema.ts'
import { useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { useQuestion } from '../../nouns/ask.tsx'
import { Time } from '../../nouns/value.tsx'
import { now } from '../../system.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { Button } from '../../ui/button.tsx'
import { Between, Facts, Loading, Panel, Row, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Rows } from './rows.tsx'

export const Support = (): ReactNode => (
  <Stack gap="loose">
    <Consents />
    <Organisation />
  </Stack>
)

const whyOver = (consent: { readonly revoked_at: string | null; readonly expires_at: string }): string | undefined =>
  consent.revoked_at !== null
    ? settingsTexts().support.revoked
    : new Date(consent.expires_at).getTime() <= now()
      ? settingsTexts().support.expired
      : undefined

function Consents(): ReactNode {
  const may = useMay()
  const [ask, dialog] = useQuestion(['list_support_consents'])
  const texts = settingsTexts().support
  if (!may('list_support_consents')) return <Soft>{t().problem.askOwner}</Soft>
  return (
    <Stack>
      <Between>
        <p className="soft">{texts.note}</p>
        <Button
          kind="primary"
          icon={<Plus aria-hidden="true" />}
          onPress={() =>
            ask({
              operation: 'grant_support_consent',
              title: texts.grant,
              button: texts.grant,
              fields: [
                {
                  name: 'mode',
                  label: () => texts.mode,
                  useOptions: () => [
                    { id: 'read_only', name: texts.modes.read_only, note: texts.modeNotes.read_only },
                    { id: 'elevated', name: texts.modes.elevated, note: texts.modeNotes.elevated },
                  ],
                },
                { name: 'expires_in_hours', label: () => texts.hours },
                { name: 'reference', label: () => texts.reference, note: () => texts.referenceNote },
              ],
              initial: { mode: 'read_only', expires_in_hours: 24 },
            })
          }
        >
          {texts.grant}
        </Button>
      </Between>
      <Rows
        list="list_support_consents"
        label={t().account.support}
        idOf={({ id }) => id}
        nameOf={({ mode }) => texts.modes[mode]}
        none={texts.none}
        columns={[
          { id: 'mode', name: texts.mode, cell: ({ mode }) => texts.modes[mode] },
          { id: 'by', name: t().operations.by, cell: ({ granted_by_email: by }) => <span dir="auto">{by}</span> },
          { id: 'ref', name: texts.reference, cell: ({ reference }) => <span dir="auto">{reference ?? '–'}</span> },
          { id: 'until', name: t().fields.expires_at, cell: ({ expires_at: at }) => <Time instant={at} /> },
          { id: 'sessions', name: texts.sessions, cell: ({ sessions }) => number(sessions), isEnd: true },
          { id: 'state', name: t().fields.state, cell: (each) => whyOver(each) ?? texts.valid },
        ]}
        remove={{
          name: t().members.revoke,
          why: whyOver,
          note: texts.revokeNote,
          run: ({ id }) => call('revoke_support_consent', { path: { id } }),
        }}
      />
      {dialog}
    </Stack>
  )
}

function Organisation(): ReactNode {
  const may = useMay()
  const [ask, dialog] = useQuestion(['get_account_organisation', 'get_current_user'])
  const { data, error } = useRead('get_account_organisation', {}, { isAlwaysStale: true })
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const texts = settingsTexts().organisation
  const { link, candidates } = data
  const askFor = ({ id, name }: PlatformOrganisation): void =>
    ask({
      operation: 'link_account_organisation',
      title: texts.linkTo(name),
      button: texts.link,
      text: texts.linkNote,
      bodyOf: () => ({ organisation_id: id }),
    })
  return (
    <Panel title={texts.title}>
      <Stack>
        {link === null ? (
          <Soft>{data.connected ? texts.none : texts.notConnected}</Soft>
        ) : (
          <Facts
            facts={[
              { name: t().fields.name, value: <span dir="auto">{link.organisation.name}</span> },
              { name: texts.linked, value: <Time instant={link.linked_at} /> },
              { name: texts.confirmed, value: <Time instant={link.confirmed_at} /> },
            ]}
          />
        )}
        {link === null && may('link_account_organisation') ? (
          <Row>
            {candidates
              .filter(({ account_id: account }) => account === undefined)
              .map(({ organisation }) => (
                <Button key={organisation.id} onPress={() => askFor(organisation)}>
                  {texts.linkTo(organisation.name)}
                </Button>
              ))}
          </Row>
        ) : null}
        {dialog}
      </Stack>
    </Panel>
  )
}
