/** Parts of pages: head, panels, facts, tabs. Pages hold no styling; these do. */
import './layout.css'
import { type ReactNode, Suspense, useEffect } from 'react'
import { Link as AriaLink, Tab, TabList, TabPanel, Tabs as AriaTabs } from 'react-aria-components'
import { brand } from '../api/brand.ts'
import { t } from '../texts/index.ts'

interface Parts {
  readonly children: ReactNode
}

export interface Crumb {
  readonly name: string
  readonly href?: string
}

export interface PageProps extends Parts {
  readonly title: string
  /** Before the title: where the page is. */
  readonly crumbs?: readonly Crumb[]
  /** Below the title. */
  readonly beside?: ReactNode
  readonly note?: string | undefined
  readonly buttons?: ReactNode
  readonly isNarrow?: boolean
}

export function Page({ title, crumbs = [], beside, note, buttons, isNarrow = false, children }: PageProps): ReactNode {
  useEffect(() => {
    document.title = `${title} · ${brand().name}`
  }, [title])
  return (
    <div className={`page ${isNarrow ? 'narrow' : ''}`}>
      <header className="page-head">
        <div className="words">
          {crumbs.length === 0 ? null : <Crumbs crumbs={crumbs} />}
          <h1 dir="auto" tabIndex={-1}>
            {title}
          </h1>
          {note === undefined ? null : <p className="soft">{note}</p>}
          {beside === undefined ? null : <div className="beside">{beside}</div>}
        </div>
        {buttons === undefined ? null : <div className="buttons">{buttons}</div>}
      </header>
      {children}
    </div>
  )
}

const Crumbs = ({ crumbs }: { readonly crumbs: readonly Crumb[] }): ReactNode => (
  <nav aria-label={t().ui.path}>
    <ol className="crumbs">
      {crumbs.map(({ name, href }) => (
        <li key={name}>
          {href === undefined ? <span dir="auto">{name}</span> : <AriaLink href={href}>{name}</AriaLink>}
        </li>
      ))}
    </ol>
  </nav>
)

export interface PanelProps extends Parts {
  readonly title?: string
  readonly buttons?: ReactNode
  /** Its content reaches to its edges. */
  readonly isBare?: boolean
}

export const Panel = ({ title, buttons, isBare = false, children }: PanelProps): ReactNode => (
  <section className="panel">
    {title === undefined ? null : (
      <div className="panel-head">
        <h2>{title}</h2>
        {buttons}
      </div>
    )}
    {isBare ? children : <div className="panel-body">{children}</div>}
  </section>
)

export interface Fact {
  readonly name: string
  readonly value: ReactNode
}

export const Facts = ({ facts }: { readonly facts: readonly Fact[] }): ReactNode => (
  <dl className="facts">
    {facts.map(({ name, value }) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd dir="auto">{value}</dd>
      </div>
    ))}
  </dl>
)

export const Split = ({ children, aside }: Parts & { readonly aside: ReactNode }): ReactNode => (
  <div className="split">
    <div className="stack">{children}</div>
    <aside aria-label={t().ui.summary}>{aside}</aside>
  </div>
)

export const Stack = ({ children, gap }: Parts & { readonly gap?: 'tight' | 'loose' }): ReactNode => (
  <div className={`stack ${gap ?? ''}`}>{children}</div>
)
export const Row = ({ children }: Parts): ReactNode => <div className="buttons">{children}</div>
export const Between = ({ children }: Parts): ReactNode => <div className="between">{children}</div>
export const Grid = ({ children }: Parts): ReactNode => <div className="grid">{children}</div>
export const Soft = ({ children }: Parts): ReactNode => <span className="soft">{children}</span>
export const Toolbar = ({ children }: Parts): ReactNode => <div className="toolbar">{children}</div>

export interface TileProps {
  readonly name: string
  readonly value: ReactNode
  readonly note?: ReactNode
  readonly href?: string
}

export function Tile({ name, value, note, href }: TileProps): ReactNode {
  const content = (
    <>
      <span className="soft">{name}</span>
      <strong>{value}</strong>
      {note === undefined ? null : <span className="soft">{note}</span>}
    </>
  )
  return href === undefined ? (
    <div className="tile">{content}</div>
  ) : (
    <AriaLink href={href} className="tile">
      {content}
    </AriaLink>
  )
}

export interface TabOf {
  readonly id: string
  readonly name: string
  readonly content: ReactNode
}

export interface TabsProps {
  readonly label: string
  readonly tabs: readonly TabOf[]
  readonly chosen: string
  readonly onChoose: (id: string) => void
}

/** Only the chosen tab is there. */
export const Tabs = ({ label, tabs, chosen, onChoose }: TabsProps): ReactNode => (
  <AriaTabs className="tabs" selectedKey={chosen} onSelectionChange={(key) => onChoose(String(key))}>
    <TabList className="tab-list" aria-label={label}>
      {tabs.map(({ id, name }) => (
        <Tab key={id} id={id}>
          {name}
        </Tab>
      ))}
    </TabList>
    {tabs.map(({ id, content }) => (
      <TabPanel key={id} id={id}>
        {/* what a tab loads replaces nothing but its content: the tab keeps the focus */}
        <Suspense fallback={<Loading />}>{content}</Suspense>
      </TabPanel>
    ))}
  </AriaTabs>
)

export interface EmptyProps {
  readonly icon: ReactNode
  readonly title: string
  readonly text: string
  readonly children?: ReactNode
}

export const Empty = ({ icon, title, text, children }: EmptyProps): ReactNode => (
  <Panel isBare>
    <div className="empty">
      <span className="emblem" aria-hidden="true">
        {icon}
      </span>
      <h2>{title}</h2>
      <p>{text}</p>
      {children}
    </div>
  </Panel>
)

/** Something more, closed at first. */
export const More = ({ name, children }: Parts & { readonly name: string }): ReactNode => (
  <details className="more">
    <summary>{name}</summary>
    <div className="form">{children}</div>
  </details>
)

export interface Step {
  readonly name: string
  readonly note: ReactNode
  readonly mark: ReactNode
  readonly isDone: boolean
  readonly button?: ReactNode
}

export const Steps = ({ steps }: { readonly steps: readonly Step[] }): ReactNode => (
  <ol className="steps">
    {steps.map(({ name, note, mark, isDone, button }) => (
      <li key={name}>
        <span className={`mark ${isDone ? 'done' : ''}`} aria-hidden="true">
          {mark}
        </span>
        <div className="words">
          <h3>{name}</h3>
          <p className="soft">{note}</p>
        </div>
        {button}
      </li>
    ))}
  </ol>
)

export const Price = ({ amount, note }: { readonly amount: string; readonly note: string }): ReactNode => (
  <div className="price">
    <strong>{amount}</strong>
    <span className="soft">{note}</span>
  </div>
)

/** Room for what is being read, so that nothing moves when it comes. */
export const Loading = ({ lines = 3 }: { readonly lines?: number }): ReactNode => (
  <div className="stack" aria-busy="true" role="status" aria-label={t().ui.loading}>
    {Array.from({ length: lines }, (_each, at) => (
      <div key={at} className="skeleton" />
    ))}
  </div>
)
