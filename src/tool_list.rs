//! List of all tools.

use std::sync::Arc;

pub(crate) use crate::engine::PicturePolicy;
use crate::tools::Tool;
use crate::tools::actions::ReactToMessage;
use crate::tools::activity::{CheckStatus, RecentlyAdded, UpcomingReleases};
use crate::tools::add_movie::AddMovie;
use crate::tools::add_series::AddSeries;
use crate::tools::ask_parents::AskParents;
use crate::tools::find_in_library::FindInLibrary;
use crate::tools::follow_title::TellMeWhenReady;
use crate::tools::library::ArrInstances;
use crate::tools::library_changes::change_media::ChangeMedia;
use crate::tools::library_changes::get_more::GetMore;
use crate::tools::list_requests::ListRequests;
use crate::tools::making_room::make_room::MakeRoom;
use crate::tools::media_details::MediaDetails;
use crate::tools::memory::{ForgetFact, RememberFact};
use crate::tools::own_space::my_space::MySpace;
use crate::tools::recommend::RecommendTitles;
use crate::tools::remove_download::RemoveDownload;
use crate::tools::remove_media::RemoveMedia;
use crate::tools::replace_copy::ReplaceCopy;
use crate::tools::request_removal::RequestRemoval;
use crate::tools::search_media::SearchMedia;
use crate::tools::seerr::report_problem::ReportProblem;
use crate::tools::send_poster::SendPoster;
use crate::tools::server_status::ServerStatus;
use crate::tools::start_vote::StartVote;
use crate::tools::tonight::ProposeTonight;
use crate::tools::typed_tool::{adapt_deletion, adapt_tool};
use crate::tools::viewing::link_account::LinkAccount;
use crate::tools::viewing::recently_watched::RecentlyWatched;
use crate::tools::why_missing::WhyMissing;

/// Returns all tools. The permissions of a user determine which of them are offered.
pub fn all_tools(library: &Arc<ArrInstances>, pictures: PicturePolicy) -> Vec<Arc<dyn Tool>> {
    let mut tools = vec![
        adapt_tool::<SearchMedia>(library),
        adapt_tool::<FindInLibrary>(library),
        adapt_tool::<AddMovie>(library),
        adapt_tool::<AddSeries>(library),
        adapt_tool::<GetMore>(library),
        adapt_tool::<AskParents>(library),
        adapt_tool::<ChangeMedia>(library),
        adapt_tool::<MediaDetails>(library),
        adapt_tool::<WhyMissing>(library),
        adapt_tool::<CheckStatus>(library),
        adapt_tool::<ServerStatus>(library),
        adapt_tool::<MySpace>(library),
        adapt_tool::<MakeRoom>(library),
        adapt_tool::<UpcomingReleases>(library),
        adapt_tool::<RecentlyAdded>(library),
        adapt_tool::<ListRequests>(library),
        adapt_tool::<RecommendTitles>(library),
        adapt_deletion::<RemoveMedia>(library),
        adapt_deletion::<RemoveDownload>(library),
        adapt_deletion::<ReplaceCopy>(library),
        adapt_tool::<RequestRemoval>(library),
        adapt_tool::<TellMeWhenReady>(library),
        adapt_tool::<RememberFact>(library),
        adapt_tool::<ForgetFact>(library),
        adapt_tool::<ReactToMessage>(library),
        adapt_tool::<StartVote>(library),
        adapt_tool::<ProposeTonight>(library),
        adapt_tool::<RecentlyWatched>(library),
        adapt_tool::<LinkAccount>(library),
        adapt_tool::<ReportProblem>(library),
    ];
    match pictures {
        PicturePolicy::Sent => tools.push(adapt_tool::<SendPoster>(library)),
        PicturePolicy::NotSent => {}
    }
    tools
}

/// Returns the names of all tools that any configuration offers.
pub(crate) fn all_tool_names() -> Vec<&'static str> {
    let tools = all_tools(&Arc::default(), PicturePolicy::Sent);
    tools.iter().map(|tool| tool.spec().name).collect()
}
